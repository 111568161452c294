// Removing ops that nobody reads.
#pragma once
#include "ir/graph/graph.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace fusor::passes {

/// Erases `op` and then whatever only it read, as long as nobody uses their results; ordered ops stay. `erasing` is
/// called before each.
void eraseDead(
    ir::Op &op, llvm::function_ref<void(ir::Op &)> erasing = [](ir::Op &) {});

/// Erases every dead op of the block.
bool eraseAllDead(ir::Block &block);

} // namespace fusor::passes
