// Common subexpressions: the first of equal ops serves all readers.
#include "ir/ops/op_def.h"
#include "passes/simplify/simplify.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::passes {
namespace {

// Operands, in an order that does not matter where the op is commutative.
llvm::SmallVector<ir::Value, 4> keyOperands(const ir::Op &op) {
  llvm::SmallVector<ir::Value, 4> operands(op.operands().begin(), op.operands().end());
  if (op.def().isCommutative)
    llvm::sort(operands, [](ir::Value a, ir::Value b) { return std::less<>()(a.def(), b.def()); });
  return operands;
}

size_t hashOf(const ir::Op &op) {
  llvm::hash_code code = llvm::hash_value(&op.def());
  for (ir::Value operand : keyOperands(op)) code = llvm::hash_combine(code, operand.def());
  return code;
}

bool sameComputation(const ir::Op &a, const ir::Op &b) {
  return &a.def() == &b.def() && a.attrs() == b.attrs() && a.resultCount() == b.resultCount() &&
         keyOperands(a) == keyOperands(b);
}

} // namespace

bool mergeEqual(ir::Function &function, PassContext &context) {
  bool changed = false;
  llvm::DenseMap<size_t, llvm::SmallVector<ir::Op *, 1>> seen;
  for (ir::Op *op : function.block().opPointers()) {
    if (op->def().isTerminator || op->def().hasSideEffectOrder || op->body()) continue;
    auto &candidates = seen[hashOf(*op)];
    auto it = llvm::find_if(candidates, [&](ir::Op *other) { return sameComputation(*other, *op); });
    if (it == candidates.end()) {
      candidates.push_back(op);
      continue;
    }
    if (!context.spend("merge-equal", op)) continue;
    for (unsigned i = 0; i < op->resultCount(); ++i) {
      ir::Value first = (*it)->result(i), second = op->result(i);
      if (first.name().empty()) first.setName(second.name());
      second.replaceAllUsesWith(first);
    }
    op->erase();
    changed = true;
  }
  return changed;
}

} // namespace fusor::passes
