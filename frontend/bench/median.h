// The middle of some measurements: what a disturbed few of them do not move. And their mean.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include <vector>

namespace fusor::frontend {

/// 0 of none.
inline double medianOf(std::vector<double> values) {
  llvm::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

/// 0 of none. Of host times: one launch in four finds cold memory, and counts as much as the others.
inline double meanOf(llvm::ArrayRef<double> values) {
  double sum = 0;
  for (double v : values) sum += v;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

} // namespace fusor::frontend
