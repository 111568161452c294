#include "passes/gradient/gradient.h"
#include "ir/graph/bug.h"
#include "ir/graph/builder.h"
#include "ir/graph/clone.h"
#include "ir/graph/printer.h"
#include "ir/ops/graph_value.h"
#include "ir/ops/op_def.h"
#include "passes/gradient/activity.h"
#include "passes/optimizer/loss_scale.h"
#include "passes/rewrite/expand.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::passes {
namespace {

// Ops that move or cast pass on a gradient that is wider than the value: a weight gradient reaches its f32 master
// through `cast @w {to = bf16}` unrounded. All others take it in the dtype of the value, but where FP8 is: the op whose
// result has a grad_quantize behind it gets a quantised gradient, and that of a quantised value is not in FP8.
bool keepsWidth(const ir::Op &op) {
  return op.resultCount() == 1 &&
         (op.is("cast") || op.def().lowering == ir::Lowering::view || op.def().lowering == ir::Lowering::indexMap);
}

bool isQuantised(ir::Value v) { return v.type().granularity != ir::Granularity::none; }

class Backward {
public:
  Backward(ir::Function &function, ir::Value loss, const PassOptions &options)
      : function_(function), loss_(loss), options_(options), activity_(function, loss), builder_(function.block()) {}

  void run() {
    auto forward = function_.block().opPointers();
    builder_.setLocation(loss_.op() ? loss_.op()->location() : ir::Location());
    add(loss_, scalesLoss(options_) ? builder_.cast(lossScale(function_, options_), loss_.dtype())
                                    : builder_.constant(1, loss_.dtype()));
    for (ir::Op *op : llvm::reverse(forward))
      if (activity_.active(*op)) visit(*op);
  }

  // The gradient of a param over all values it is read through, or null.
  ir::Value parameterGradient(const ir::Persistent &param) {
    ir::Value sum;
    for (ir::Value read : function_.reads()) {
      if (parameterBehind(function_.module(), read) != &param) continue;
      ir::Value part = total(read);
      if (part && sum) part = builder_.op("add", widened(sum, part));
      if (part) sum = part;
    }
    if (!sum) return sum;
    sum = builder_.cast(sum, ir::computeType(param.type.dtype));
    if (sum.op() &&
        (sum.name().empty() || sum.name().startswith("d."))) // so far called after the copy it is read through
      sum.setName("d." + param.name);
    return sum;
  }

private:
  void visit(ir::Op &op) {
    builder_.setLocation(op.location());
    llvm::SmallVector<ir::Value, 4> incoming;
    for (ir::Value result : op.results()) {
      ir::Value gradient = total(result);
      bool keeps = !gradient || keepsWidth(op) || isQuantised(gradient) || isQuantised(result);
      incoming.push_back(keeps ? gradient : builder_.cast(gradient, result.dtype()));
    }
    if (llvm::none_of(incoming, [](ir::Value v) { return static_cast<bool>(v); })) return;
    auto gradients = op.def().gradient({op, builder_, incoming});
    for (unsigned i = 0; i < op.operands().size() && i < gradients.size(); ++i)
      if (gradients[i] && activity_.varies(op.operand(i))) add(op.operand(i), gradients[i]);
  }

  void add(ir::Value value, ir::Value gradient) {
    if (gradient.shape() != value.shape())
      FUSOR_BUG("the gradient of %{0}, {1}, was given as {2}", value.name(), value.type().str(), gradient.type().str());
    parts_[value.def()].push_back(named(gradient, value.name()));
  }

  // The sum of what the users of `value` contributed, the last user first; null where there is none.
  ir::Value total(ir::Value value) {
    auto it = parts_.find(value.def());
    if (it == parts_.end()) return {};
    if (it->second.size() > 1)
      for (ir::Value part : it->second) // the sum gets the name
        if (part.name() == ("d." + value.name()).str()) part.setName(("d." + value.name() + ".part").str());
    ir::Value sum = it->second.front();
    for (ir::Value part : llvm::drop_begin(it->second))
      sum = named(builder_.op("add", widened(sum, part)), value.name());
    it->second.assign(1, sum);
    return sum;
  }

  llvm::SmallVector<ir::Value, 2> widened(ir::Value a, ir::Value b) {
    ir::DType wide = ir::byteSize(a.dtype()) >= ir::byteSize(b.dtype()) ? a.dtype() : b.dtype();
    return {builder_.cast(a, wide), builder_.cast(b, wide)};
  }

  static ir::Value named(ir::Value gradient, llvm::StringRef of) {
    if (gradient.op() && gradient.name().empty() && !of.empty()) gradient.setName(("d." + of).str());
    return gradient;
  }

  ir::Function &function_;
  ir::Value loss_;
  const PassOptions &options_;
  Activity activity_;
  ir::Builder builder_;
  llvm::DenseMap<ir::ValueDef *, llvm::SmallVector<ir::Value, 2>> parts_;
};

// Ops without a gradient rule for their form are replaced by their definition, until all that is left has one.
llvm::Error expandWithoutRule(ir::Function &function, llvm::function_ref<ir::Value()> loss) {
  for (bool changed = true; changed;) {
    changed = false;
    Activity activity(function, loss());
    for (ir::Op *op : function.block().opPointers()) {
      if (!activity.active(*op) || op->def().hasGradient(op->site())) continue;
      if (!op->def().expansion)
        return llvm::make_error<PassError>(
            op->location(),
            llvm::formatv("'{0}' has no gradient rule, and the loss depends on it: {1}", op->name(), ir::printOp(*op))
                .str(),
            "compute it from ops that have one, see `fusor ops`");
      expandOp(*op);
      changed = true;
    }
  }
  return llvm::Error::success();
}

llvm::Error checkLoss(const ir::Function &function) {
  auto entries = function.returns();
  ir::Value loss = entries.empty() ? ir::Value() : entries[0].value;
  if (loss && entries[0].kind == ir::ReturnKind::result && loss.rank() == 0 && ir::isFloat(loss.dtype()))
    return llvm::Error::success();
  ir::Op *terminator = function.block().terminator();
  return llvm::make_error<PassError>(terminator ? terminator->location() : ir::Location(),
                                     llvm::formatv("@{0} must return a scalar float loss first, returns {1}",
                                                   function.name(), loss ? loss.type().str() : "nothing")
                                         .str(),
                                     "end it with cross_entropy or mean");
}

} // namespace

llvm::Error addBackward(ir::Function &function, PassContext &context) {
  if (auto error = checkLoss(function)) return error;
  auto loss = [&] { return function.returns()[0].value; };
  ir::Op *terminator = function.block().terminator();
  if (auto error = expandWithoutRule(function, loss)) return error;

  Backward backward(function, loss(), context.options());
  backward.run();
  auto entries = function.returns();
  for (const auto &persistent : function.module().persistents()) {
    if (persistent->kind != ir::PersistentKind::param) continue;
    if (ir::Value gradient = backward.parameterGradient(*persistent))
      entries.push_back({ir::ReturnKind::gradient, persistent->name, gradient});
    else
      context.record({Decision::Kind::refused,
                      "gradient",
                      function.name().str(),
                      "@" + persistent->name,
                      persistent->location,
                      "does not influence the loss, so it is not trained",
                      0,
                      {persistent->name}});
  }
  function.setReturns(entries, terminator->location());
  return llvm::Error::success();
}

llvm::Expected<bool> gradient(ir::Module &module, PassContext &context) {
  auto source = sourceFunction(module, context.options());
  if (!source) return source.takeError();
  if (auto error = checkLoss(**source)) return error;
  if (module.function("train_step"))
    return llvm::make_error<PassError>(ir::Location(), "the module has a function @train_step already",
                                       "differentiate a module that was not differentiated before");
  ir::Function &target = module.addFunction("train_step");
  ir::ValueMap map;
  ir::cloneInto(target, **source, map);
  if (auto error = addBackward(target, context)) {
    module.eraseFunction("train_step");
    return error;
  }
  return true;
}

} // namespace fusor::passes
