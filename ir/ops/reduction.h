// What passes and codegen ask about a reduction.
#pragma once
#include "ir/ops/op_def.h"

namespace fusor::ir {

/// For each dim of an operand of `rank`, whether the op reduces it (attribute `dims`; an empty list means all).
std::vector<bool> reducedDims(const OpSite &site, unsigned rank);

} // namespace fusor::ir
