// Row-major index arithmetic for the reference hooks.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace fusor::ir {

using Index = llvm::SmallVector<int64_t, 6>;

inline int64_t count(llvm::ArrayRef<int64_t> shape) {
  int64_t n = 1;
  for (int64_t dim : shape) n *= dim;
  return n;
}

inline Index stridesOf(llvm::ArrayRef<int64_t> shape) {
  Index strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

/// Strides that read a tensor of `shape` as if it were broadcast to `to`: 0 along broadcast dims.
inline Index broadcastStrides(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> to) {
  Index own = stridesOf(shape), strides(to.size(), 0);
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1) strides[to.size() - shape.size() + i] = own[i];
  return strides;
}

inline int64_t dot(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b) {
  int64_t sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Calls visit(index, linear) for every index of `shape` in row-major order.
template <typename Visit> void forEachIndex(llvm::ArrayRef<int64_t> shape, Visit visit) {
  Index index(shape.size(), 0);
  for (int64_t linear = 0, n = count(shape); linear < n; ++linear) {
    visit(llvm::ArrayRef<int64_t>(index), linear);
    for (size_t i = shape.size(); i-- > 0;) {
      if (++index[i] < shape[i]) break;
      index[i] = 0;
    }
  }
}

} // namespace fusor::ir
