// The middle of some measurements: what a disturbed few of them do not move.
#pragma once
#include "llvm/ADT/STLExtras.h"
#include <vector>

namespace fusor::frontend {

/// 0 of none.
inline double medianOf(std::vector<double> values) {
  llvm::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

} // namespace fusor::frontend
