// Copies of ops, blocks and modules.
#pragma once
#include "ir/graph/graph.h"
#include "llvm/ADT/DenseMap.h"

namespace fusor::ir {

/// What each value of the source is in the copy. Cloning adds the results of what it copies.
///
/// A value that is not in the map stays itself, except a persistent value, which the copy's function reads by its name.
using ValueMap = llvm::DenseMap<ValueDef *, Value>;

/// A copy of `op`, with its body, names, attributes and location, inserted into `block` before `before` (null: at the
/// end).
Op *cloneInto(Block &block, const Op &op, ValueMap &map, Op *before = nullptr);

enum class CloneTerminator : uint8_t { no, yes };
/// Copies all ops of `source`, in order. The arguments of `source` must be in the map where they mean something else in
/// `block`.
void cloneInto(Block &block, const Block &source, ValueMap &map, CloneTerminator terminator, Op *before = nullptr);

/// Copies arguments, body and returns of `source` into the empty function `target`, which may be of another module.
void cloneInto(Function &target, const Function &source, ValueMap &map);

} // namespace fusor::ir
