// The constant tensors of a file, whichever of the format's ways they are stored in: raw bytes, typed fields, side
// files.
#pragma once
#include "ir/types/type.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <vector>

namespace fusor::onnx {

class Tensor;

/// A tensor with its elements, row-major.
struct Data {
  ir::DType dtype = ir::DType::f32;
  llvm::SmallVector<int64_t, 4> shape;
  std::shared_ptr<const std::vector<char>> bytes;

  int64_t elements() const { return static_cast<int64_t>(bytes->size()) / ir::byteSize(dtype); }
  /// "f32[2, 3]"
  std::string typeText() const;
};

/// The dtype of ONNX's type number; the error says what it is and why not ("float8e4m3fnuz is for other hardware").
llvm::Expected<ir::DType> dtypeOf(int32_t elementType);

/// Reads `tensor`; `folder` is the model's, for side files (empty: the model has none). Payloads must have exactly the
/// size that dims and type ask for.
llvm::Expected<Data> readTensor(const Tensor &tensor, llvm::StringRef folder);

/// The shape as text: "2, 3".
std::string str(llvm::ArrayRef<int64_t> shape);

} // namespace fusor::onnx
