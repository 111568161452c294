#include "passes/fp8/insert.h"
#include "ir/graph/bug.h"
#include "ir/graph/builder.h"
#include "ir/ops/op_def.h"
#include "passes/fp8/recipe.h"
#include "passes/optimizer/state.h"
#include "passes/precision/demand.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Regex.h"

namespace fusor::passes {
namespace {

using ir::DType, ir::Value;

class Inserter {
public:
  Inserter(ir::Function &function, PassContext &context, llvm::Regex *select)
      : function_(function), module_(function.module()), context_(context), recipe_(*context.options().fp8),
        select_(select), heads_(INT64_MAX) {}

  bool run() {
    bool changed = false;
    for (ir::Op *op : function_.block().opPointers()) {
      if (op->def().lowering != ir::Lowering::contraction || ir::isFp8(op->operand(0u).dtype())) continue;
      std::string layer;
      if (auto refused = whyNot(*op, layer)) {
        context_.record(Decision::Kind::refused, "fp8", *op, std::move(*refused));
        continue;
      }
      if (!context_.spend("fp8", op)) continue;
      context_.record(Decision::Kind::taken, "fp8", *op, summary(layer));
      quantise(*op, layer);
      changed = true;
    }
    return changed;
  }

private:
  // The param or constant a weight is read from, perhaps through its bf16 copy; null where it is computed.
  Value masterOf(Value weight) const {
    if (weight.op() && weight.op()->is("cast")) weight = weight.op()->operand(0u);
    if (!weight.isPersistent()) return Value();
    const ir::Persistent &stored = *module_.persistent(weight.name());
    bool isWideConstant = stored.kind == ir::PersistentKind::constant && stored.type.dtype == DType::f32;
    return stored.kind == ir::PersistentKind::param || isWideConstant ? weight : Value();
  }

  // As wide as a vocabulary. Narrow ones compute in f32 (passes/precision), which the dtype says.
  bool isHead(const ir::Op &op) {
    const ir::Dim &outputs = op.result().shape().back();
    return outputs.isConstant() && outputs.value() >= context_.options().wideHeadBelow && heads_.isWideHead(op);
  }

  std::optional<std::string> whyNot(const ir::Op &op, std::string &layer) {
    if (!op.is("linear")) return (op.name() + " multiplies two activations, the recipe covers linear layers").str();
    if (op.result().dtype() != DType::bf16)
      return ("computes in " + ir::name(op.result().dtype()) + ", FP8 takes the place of bf16").str();
    Value master = masterOf(op.operand(1));
    if (!master) return std::string("its weight is computed, so no scale can be kept for it");
    layer = layerOf(master.name());
    if (recipe_.inBf16)
      if (auto kept = recipe_.inBf16->find(layer); kept != recipe_.inBf16->end())
        return llvm::formatv("'{0}': {1}", layer, kept->second).str();
    if (select_ && !select_->match(layer))
      return llvm::formatv("'{0}' has no match of the selection '{1}'", layer, recipe_.select).str();
    if (!select_ && isHead(op))
      return llvm::formatv("'{0}' is a head: its result goes to nothing but a loss or the function's results (a "
                           "selection that names it has it in FP8)",
                           layer)
          .str();
    return std::nullopt;
  }

  std::string summary(llvm::StringRef layer) const {
    return llvm::formatv("'{0}': x and weight in E4M3, gradient in {1}{2}", layer,
                         recipe_.format == Fp8Format::hybrid ? "E5M2" : "E4M3",
                         recipe_.wgrad ? "" : ", weight gradient in bf16")
        .str();
  }

  Value scaleOf(const llvm::Twine &tensor) {
    stateOf(function_, historyName(tensor.str()), {DType::f32, {recipe_.amaxHistory}});
    return stateOf(function_, scaleName(tensor.str()), {DType::f32, {}}, {ir::Initializer::Kind::constant, 1.0});
  }

  void quantise(ir::Op &op, const std::string &layer) {
    Value x = unrounded(op.operand(0u));
    ir::Builder b(op);
    b.setLocation(op.location());
    Value q = b.op("quantize", {x, scaleOf(layer + ".input")});
    Value wq = b.op("quantize", {masterOf(op.operand(1)), scaleOf(layer + ".weight")});
    q.setName(layer + ".input.fp8"), wq.setName(layer + ".weight.fp8");
    Value y = recipe_.measureOnly ? b.op("linear", {op.operand(0u), op.operand(1), op.operand(2)})
                                  : b.op("linear", {q, wq, op.operand(2)}, {{"plain_wgrad", !recipe_.wgrad}});
    DType gradient = recipe_.format == Fp8Format::hybrid ? DType::f8e5m2 : DType::f8e4m3;
    Value marked = b.op("grad_quantize", {y, scaleOf(layer + ".grad_output")}, {{"dtype", gradient}});
    y.setName(op.result().name());
    op.result().replaceAllUsesWith(marked);
    op.erase();
  }

  // What `value` was before it was rounded to bf16; itself where no op that could give f32 made it.
  Value unrounded(Value value) {
    ir::Op *op = value.op();
    if (!op || value.dtype() != DType::bf16 || value.index() != 0) return value;
    if (op->is("cast")) return op->operand(0u).dtype() == DType::f32 ? op->operand(0u) : value;
    bool isNorm = op->def().precision == ir::PrecisionClass::normalizes && op->def().attr("out");
    if (!isNorm && !(op->def().isElementwise() && op->resultCount() == 1)) return value;
    if (isNorm) {
      op->setAttr("out", DType::f32);
    } else {
      ir::Builder before(*op);
      before.setLocation(op->location());
      for (unsigned i = 0; i < op->operands().size(); ++i)
        if (op->operand(i) && op->operand(i).dtype() == DType::bf16)
          op->setOperand(i, before.cast(op->operand(i), DType::f32));
    }
    auto types = ir::inferTypes(op->site());
    if (!types) FUSOR_BUG("fp8-insert made an invalid op: {0}", llvm::toString(types.takeError()));
    ir::Builder after(*std::next(op->getIterator()));
    after.setLocation(op->location());
    value.setType((*types)[0]);
    Value rounded = after.cast(value, DType::bf16);
    rounded.setName((value.name() + ".bf16").str());
    value.replaceAllUsesWith(rounded);
    rounded.op()->setOperand(0, value);
    return value;
  }

  ir::Function &function_;
  ir::Module &module_;
  PassContext &context_;
  const DelayedScaling &recipe_;
  llvm::Regex *select_;
  Demand heads_;
};

} // namespace

llvm::Expected<bool> fp8Insert(ir::Module &module, PassContext &context) {
  const PassOptions &options = context.options();
  if (!options.fp8 || !context.enabled("fp8")) return false;
  if (auto error = checkRecipe(*options.fp8)) return error;
  if (options.precision != DType::bf16)
    return llvm::make_error<PassError>(ir::Location(),
                                       llvm::formatv("FP8 with {0} around it", ir::name(options.precision)).str(),
                                       "everything that is not in FP8 computes in bf16: precision = bf16");
  bool takesAll = options.fp8->select == "all" || options.fp8->select == "auto";
  llvm::Regex select(options.fp8->select);
  bool changed = false;
  for (const auto &function : module.functions())
    changed |= Inserter(*function, context, takesAll ? nullptr : &select).run();
  return changed;
}

} // namespace fusor::passes
