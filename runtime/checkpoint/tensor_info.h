// A tensor as files describe it: name, type, shape. Data are kept apart, as bytes in row-major order.
#pragma once
#include "ir/types/dtype.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>
#include <string>

namespace fusor::runtime {

struct TensorInfo {
  std::string name = {};
  ir::DType dtype = ir::DType::f32;
  llvm::SmallVector<int64_t, 4> shape = {}; ///< empty for a scalar; a 0 makes an empty tensor
};

/// Bytes of a tensor; nothing when the product does not fit into 63 bits or an extent is negative.
std::optional<uint64_t> tensorBytes(ir::DType dtype, llvm::ArrayRef<int64_t> shape);

/// "[512, 128]"
std::string shapeText(llvm::ArrayRef<int64_t> shape);

} // namespace fusor::runtime
