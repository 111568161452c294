// Replaces an op by its expansion, its definition in smaller ops.
#pragma once
#include "ir/graph/graph.h"

namespace fusor::passes {

/// The op's table entry must have an expansion. Results keep their names, the new ops get the op's location.
void expandOp(ir::Op &op);

} // namespace fusor::passes
