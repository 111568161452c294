// How large a value can be, from what makes it.
#pragma once
#include "ir/graph/graph.h"

namespace fusor::passes {

/// No element is further from 0 than this; infinite where that is not known, or where one may be no number.
/// (1 - cast(mask: i64)) * -10000 is at most 9.3e22.
double largestMagnitude(ir::Value value);

} // namespace fusor::passes
