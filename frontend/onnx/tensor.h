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
  bool isNibble = false; // i8 or u8 that is int4 or uint4 in the file

  int64_t elements() const { return static_cast<int64_t>(bytes->size()) / ir::byteSize(dtype); }
  /// "f32[2, 3]"
  std::string typeText() const;
};

/// What ONNX calls int4 and uint4 is i8 and u8 here, with elements in the range of 4 bits.
struct ElementType {
  ir::DType dtype;
  bool isNibble = false;
};
/// The type of ONNX's type number; the error says what it is and why not ("float8e4m3fnuz is for other hardware").
llvm::Expected<ElementType> elementTypeOf(int32_t elementType);
/// The same where 4-bit types are not supported.
llvm::Expected<ir::DType> dtypeOf(int32_t elementType);

/// Reads `tensor`; `folder` is the model's, for side files (empty: the model has none). Payloads must have exactly the
/// size that dims and type ask for.
llvm::Expected<Data> readTensor(const Tensor &tensor, llvm::StringRef folder);

/// The shape as text: "2, 3".
std::string str(llvm::ArrayRef<int64_t> shape);

} // namespace fusor::onnx
