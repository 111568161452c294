#include "ir/graph/builder.h"
#include "ir/reference/reference.h"
#include "passes/rewrite/erase.h"
#include "passes/simplify/simplify.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::passes {
namespace {

bool isConstant(ir::Value value) { return value && value.op() && value.op()->is("constant"); }

// One scalar made of scalar constants. `extent` is one where its dims are numbers.
bool isFoldable(const ir::Op &op) {
  if (op.resultCount() != 1 || op.result().rank() != 0 || op.def().isTerminator || op.def().hasSideEffectOrder)
    return false;
  if (op.is("extent")) return ir::product(op.attr<ir::Shape>("shape")).isConstant();
  return !op.operands().empty() && llvm::all_of(op.operands(), isConstant) &&
         (op.def().formula || op.def().reference || op.def().expansion);
}

// The value, rounded to the result's dtype. Absent where the reference cannot give it.
std::optional<double> evaluated(const ir::Op &op) {
  std::vector<ir::RefTensor> inputs;
  for (ir::Value operand : op.operands()) {
    ir::RefTensor tensor;
    tensor.dtype = operand.dtype();
    tensor.data = {ir::roundTo(operand.dtype(), operand.op()->attr<double>("value"))};
    inputs.push_back(std::move(tensor));
  }
  llvm::SmallVector<const ir::RefTensor *, 4> pointers;
  for (const ir::RefTensor &input : inputs) pointers.push_back(&input);
  ir::RefTensor output;
  output.dtype = op.result().dtype();
  output.data = {0};
  if (auto error = ir::evaluateOp(op.site(), pointers, output, {})) {
    llvm::consumeError(std::move(error));
    return std::nullopt;
  }
  return ir::roundTo(output.dtype, output.data[0]);
}

} // namespace

bool foldConstants(ir::Function &function, PassContext &context) {
  bool changed = false;
  for (ir::Op *op : function.block().opPointers()) {
    if (!isFoldable(*op)) continue;
    auto value = evaluated(*op);
    if (!value || !context.spend("fold-constants", op)) continue;
    ir::Builder builder(*op);
    builder.setLocation(op->location());
    ir::Value constant = builder.constant(*value, op->result().dtype());
    constant.setName(op->result().name());
    op->result().replaceAllUsesWith(constant);
    op->erase(); // its operands come earlier in the block and fall with the next clean-up
    changed = true;
  }
  return changed;
}

} // namespace fusor::passes
