#include "passes/rewrite/erase.h"
#include "ir/ops/op_def.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

namespace fusor::passes {

static bool isDead(const ir::Op &op) { return op.unused() && !op.def().isTerminator && !op.def().hasSideEffectOrder; }

void eraseDead(ir::Op &op, llvm::function_ref<void(ir::Op &)> erasing) {
  llvm::SmallSetVector<ir::Op *, 8> candidates;
  candidates.insert(&op);
  while (!candidates.empty()) {
    ir::Op *dead = candidates.pop_back_val();
    if (!isDead(*dead)) continue;
    for (ir::Value operand : dead->operands())
      if (operand && operand.op()) candidates.insert(operand.op());
    erasing(*dead);
    dead->erase();
  }
}

bool eraseAllDead(ir::Block &block) {
  bool changed = false;
  auto ops = block.opPointers();
  for (ir::Op *op : llvm::reverse(ops))
    if (isDead(*op)) {
      op->erase();
      changed = true;
    }
  return changed;
}

} // namespace fusor::passes
