#include "passes/gradient/activity.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::passes {

const ir::Persistent *parameterBehind(const ir::Module &module, ir::Value read) {
  const ir::Persistent *persistent = module.persistent(read.name());
  while (persistent && persistent->kind == ir::PersistentKind::derived &&
         (persistent->deriveOp == "cast" || persistent->deriveOp == "quantize"))
    persistent = module.persistent(persistent->deriveFrom[0]);
  return persistent && persistent->kind == ir::PersistentKind::param && ir::isFloat(persistent->type.dtype) ? persistent
                                                                                                            : nullptr;
}

Activity::Activity(ir::Function &function, ir::Value loss) {
  for (ir::Value read : function.reads())
    if (parameterBehind(function.module(), read)) varies_.insert(read.def());
  auto ops = function.block().opPointers();
  for (ir::Op *op : ops)
    if (llvm::any_of(op->operands(), [&](ir::Value v) { return varies(v); }))
      for (ir::Value result : op->results())
        if (ir::isFloat(result.dtype())) varies_.insert(result.def());

  llvm::DenseSet<ir::ValueDef *> needed{loss.def()};
  for (ir::Op *op : llvm::reverse(ops)) {
    bool reached = llvm::any_of(op->results(), [&](ir::Value v) { return needed.contains(v.def()); });
    bool carries = llvm::any_of(op->results(), [&](ir::Value v) { return varies(v); });
    if (!reached || !carries) continue;
    active_.insert(op);
    for (ir::Value operand : op->operands())
      if (varies(operand)) needed.insert(operand.def());
  }
}

} // namespace fusor::passes
