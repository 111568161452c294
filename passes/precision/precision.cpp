#include "passes/precision/precision.h"
#include "ir/graph/bug.h"
#include "ir/graph/builder.h"
#include "ir/ops/op_def.h"
#include "passes/precision/demand.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::passes {
namespace {

using ir::DType, ir::PrecisionClass, ir::Value;

class Converter {
public:
  Converter(ir::Function &function, PassContext &context)
      : function_(function), context_(context), low_(context.options().precision),
        sizes_(context.sizes(function.module())), demand_(context.options().wideHeadBelow),
        first_(&*function.block().ops().begin()) {}

  bool run() {
    llvm::SmallVector<DType, 8> declared; // of what the function returns
    for (const ir::ReturnEntry &entry : function_.returns())
      declared.push_back(entry.kind == ir::ReturnKind::update
                             ? function_.module().persistent(entry.name)->type.dtype // a cache may have become narrow
                             : entry.value.dtype());
    decide();
    for (ir::Op *op : function_.block().opPointers())
      if (!op->def().isTerminator) convert(*op);
    ir::Op *terminator = function_.block().terminator();
    ir::Builder builder(*terminator);
    builder.setLocation(terminator->location());
    for (unsigned i = 0; i < declared.size(); ++i) {
      Value value = terminator->operand(i);
      bool widened = isLow(value) && declared[i] == DType::f32;
      setOperand(*terminator, i, widened ? copy(value, DType::f32) : builder.cast(value, declared[i]));
    }
    return changed_;
  }

private:
  // Everything that depends on who uses what, before any of it changes.
  void decide() {
    auto ops = function_.block().opPointers();
    for (ir::Op *op : ops) {
      classes_[op] = op->def().precision;
      if (classes_[op] == PrecisionClass::low && llvm::any_of(op->operands(), isWide) && !becomesLow(*op)) {
        classes_[op] = PrecisionClass::wide;
        demand_.keepWide(*op);
      }
    }
    for (ir::Op *op : ops)
      if (classes_[op] == PrecisionClass::normalizes) lowResult_[op] = demand_.wantsLow(op->result());
  }

  // What `op` reads and writes less where it computes in `low_`.
  int64_t narrowingSaves(const ir::Op &op) const {
    int64_t wide = isWide(op.result(0)) ? ir::byteSize(op.result(0).type(), sizes_).value_or(0) : 0;
    for (unsigned i = 0; i < op.operands().size(); ++i)
      if (isWide(op.operand(i)) && !llvm::is_contained(op.def().untypedOperands, i))
        wide += ir::byteSize(op.operand(i).type(), sizes_).value_or(0);
    return wide - wide * ir::byteSize(low_) / ir::byteSize(DType::f32);
  }

  bool becomesLow(const ir::Op &op) {
    if (demand_.isWideHead(op)) {
      context_.record(Decision::Kind::refused, "precision", op,
                      llvm::formatv("a head with {0} outputs, fewer than {1}, computes in f32",
                                    op.result().type().dim(-1).str(), context_.options().wideHeadBelow)
                          .str(),
                      narrowingSaves(op));
      return false;
    }
    if (!context_.spend("precision", &op)) return false;
    context_.record(Decision::Kind::taken, "precision", op, ("computes in " + ir::name(low_)).str(),
                    narrowingSaves(op));
    return true;
  }

  void convert(ir::Op &op) {
    switch (classes_.lookup(&op)) {
    case PrecisionClass::follows:
      if (llvm::any_of(op.operands(), [&](Value v) { return isLow(v); })) narrowOperands(op);
      break;
    case PrecisionClass::low: narrowOperands(op); break;
    case PrecisionClass::wide:
      for (unsigned i = 0; i < op.operands().size(); ++i)
        if (isLow(op.operand(i))) setOperand(op, i, copy(op.operand(i), DType::f32));
      break;
    case PrecisionClass::normalizes: convertNorm(op); break;
    case PrecisionClass::any: break;
    }
    inferAgain(op);
  }

  void convertNorm(ir::Op &op) {
    bool wantsLow = lowResult_.lookup(&op);
    if (wantsLow && isWide(op.operand(0u))) setOperand(op, 0, copy(op.operand(0u), low_));
    if (!wantsLow && isLow(op.operand(0u)) && !op.site().has("out")) op.setAttr("out", DType::f32);
  }

  // What need not share the operands' dtype, an attention's bias, is f32 there and stays that.
  void narrowOperands(ir::Op &op) {
    for (unsigned i = 0; i < op.operands().size(); ++i) {
      const bool isFree = llvm::is_contained(op.def().untypedOperands, i);
      if (isFree && isLow(op.operand(i))) setOperand(op, i, copy(op.operand(i), DType::f32));
      if (!isFree && isWide(op.operand(i))) setOperand(op, i, copy(op.operand(i), low_));
    }
  }

  void setOperand(ir::Op &op, unsigned i, Value value) {
    if (op.operand(i) == value) return;
    op.setOperand(i, value);
    changed_ = true;
  }

  void inferAgain(ir::Op &op) {
    if (!op.def().infer) return;
    auto types = ir::inferTypes(op.site());
    if (!types) FUSOR_BUG("precision made an invalid op: {0}", llvm::toString(types.takeError()));
    for (unsigned i = 0; i < op.resultCount(); ++i) {
      changed_ |= op.result(i).type() != (*types)[i];
      op.result(i).setType((*types)[i]);
    }
  }

  // `value` in `dtype`, made once, right behind the value.
  Value copy(Value value, DType dtype) {
    Value &copy = copies_[value.def()];
    if (copy) return copy;
    ir::Op *made = value.op();
    ir::Builder builder(made ? *std::next(made->getIterator()) : *first_);
    builder.setLocation(made ? made->location() : ir::Location());
    copy = made && made->is("constant") ? builder.constant(made->attr<double>("value"), dtype)
                                        : builder.cast(value, dtype);
    if (!value.name().empty()) copy.setName((value.name() + "." + ir::name(dtype)).str());
    return copy;
  }

  static bool isWide(Value v) { return v && v.dtype() == DType::f32; }
  bool isLow(Value v) const { return v && v.dtype() == low_; }

  ir::Function &function_;
  PassContext &context_;
  DType low_;
  ir::SymbolValues sizes_; // of decisions
  Demand demand_;
  ir::Op *first_;
  llvm::DenseMap<const ir::Op *, PrecisionClass> classes_;
  llvm::DenseMap<const ir::Op *, bool> lowResult_;
  llvm::DenseMap<ir::ValueDef *, Value> copies_; // a value has one dtype, so it is copied to one other at most
  bool changed_ = false;
};

// The f32 state `name` is nothing but a cache: every function only writes rows to it with cache_write.
bool isCache(const ir::Module &module, const ir::Persistent &state) {
  bool written = false;
  for (const auto &function : module.functions())
    for (Value read : function->reads()) {
      if (read.name() != state.name) continue;
      for (ir::Op *user : read.users()) {
        if (!user->is("cache_write") || user->operand(0u) != read) return false;
        written = true;
      }
    }
  return written;
}

bool narrowCaches(ir::Module &module, DType low) {
  bool changed = false;
  for (const auto &persistent : module.persistents()) {
    if (persistent->kind != ir::PersistentKind::state || persistent->type.dtype != DType::f32 ||
        !isCache(module, *persistent))
      continue;
    persistent->type.dtype = low;
    for (const auto &function : module.functions())
      for (Value read : function->reads())
        if (read.name() == persistent->name) read.setType(persistent->type);
    changed = true;
  }
  return changed;
}

} // namespace

llvm::Expected<bool> precision(ir::Module &module, PassContext &context) {
  DType low = context.options().precision;
  if (low == DType::f32 || !context.enabled("precision")) return false;
  if (low != DType::bf16 && low != DType::f16)
    return llvm::make_error<PassError>(ir::Location(), llvm::formatv("there is no precision {0}", ir::name(low)).str(),
                                       "precisions are f32, bf16 and f16");
  bool changed = narrowCaches(module, low);
  for (const auto &function : module.functions()) changed |= Converter(*function, context).run();
  return changed;
}

} // namespace fusor::passes
