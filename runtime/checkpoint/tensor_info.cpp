#include "runtime/checkpoint/tensor_info.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

namespace fusor::runtime {

std::optional<uint64_t> tensorBytes(ir::DType dtype, llvm::ArrayRef<int64_t> shape) {
  int64_t bytes = ir::byteSize(dtype);
  for (int64_t extent : shape)
    if (extent < 0 || llvm::MulOverflow(bytes, extent, bytes)) return std::nullopt;
  return uint64_t(bytes);
}

std::string shapeText(llvm::ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + llvm::itostr(shape[i]);
  return text + "]";
}

} // namespace fusor::runtime
