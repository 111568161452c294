#include "runtime/execute/constants.h"
#include "ir/ops/op_def.h"
#include "runtime/cpu/reference_step.h"

namespace fusor::runtime {

using namespace ir;

llvm::Error fillConstants(const Function &function, const passes::MemoryPlan &plan, const SymbolValues &symbols,
                          char *constants) {
  for (const Op &op : function.block().ops()) {
    if (!op.operands().empty() || op.body() || op.def().hasSideEffectOrder) continue;
    llvm::SmallVector<RefTensor, 1> outputs;
    for (Value result : op.results()) {
      auto tensor = zeros(result.type(), symbols);
      if (!tensor) return tensor.takeError();
      outputs.push_back(std::move(*tensor));
    }
    if (auto error = evaluateOp(op.site(), {}, outputs, symbols)) return error;
    for (unsigned i = 0; i < outputs.size(); ++i)
      writeTensor(op.result(i).type(), outputs[i], constants + plan.buffer(op.result(i)).place.offset);
  }
  return llvm::Error::success();
}

} // namespace fusor::runtime
