// How many bytes an op reads and writes, each once: for GB/s, rooflines and what kernels say of themselves.
#pragma once
#include "ir/graph/graph.h"

namespace fusor::ir {

/// All of `value`.
Dim bytesOf(Value value);
/// What `op` needs of its operand: of a table the rows that are looked up, of a slice or a split the parts that are
/// used.
Dim bytesRead(const Op &op, Value operand);
/// What all users of a block's argument need of it: all of it as soon as one does.
Dim bytesRead(Value argument);
/// Of an op, or of a fusion from outside: its operands and results, 0 for what has no size yet.
int64_t movedBytes(const Op &op, const SymbolValues &symbols);

} // namespace fusor::ir
