// A tensor in somebody else's memory: how inputs and outputs reach a Program.
#pragma once
#include "ir/types/dtype.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <string>

namespace fusor::runtime {

/// Row-major elements of `dtype`; i1 takes one byte an element.
struct TensorView {
  ir::DType dtype = ir::DType::f32;
  llvm::SmallVector<int64_t, 4> shape;
  void *data = nullptr;

  int64_t elements() const;
  int64_t bytes() const { return elements() * ir::byteSize(dtype); }
  /// They are of type T.
  template <typename T> llvm::MutableArrayRef<T> elementsOf() const {
    return {static_cast<T *>(data), static_cast<size_t>(elements())};
  }
  /// "f32[2, 3]"
  std::string typeText() const;
};

} // namespace fusor::runtime
