// The last step of a reference hook whose sums are longer than one scalar.
#pragma once
#include "ir/ops/op_def.h"

namespace fusor::ir {

/// Rounds each element to the tensor's dtype, where that is narrower than f32.
inline void roundAll(RefTensor &tensor) {
  if (!isNarrowFloat(tensor.dtype)) return;
  for (double &x : tensor.data) x = roundTo(tensor.dtype, x);
}

} // namespace fusor::ir
