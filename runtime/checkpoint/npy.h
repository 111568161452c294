// NumPy's .npy files, for tokens, test data and `fusor run --input`. Versions 1.0 and 2.0, little endian, C order.
#pragma once
#include "runtime/checkpoint/tensor_info.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>

namespace fusor::runtime {

/// An array and its data, which stay in the file (mapped) until they are looked at.
struct NpyArray {
  ir::DType dtype = ir::DType::f32;
  llvm::SmallVector<int64_t, 4> shape;
  llvm::ArrayRef<uint8_t> bytes; ///< row-major; lives as long as `file`; may be unaligned: copy, do not cast
  std::unique_ptr<llvm::MemoryBuffer> file;
};

/// "<f4" for f32; nothing for types NumPy does not have (bf16, FP8).
std::optional<llvm::StringRef> npyDescr(ir::DType dtype);

/// Errors: FileError (read); FileContentError for a damaged file, big-endian or structured data, and Fortran order.
llvm::Expected<NpyArray> readNpy(llvm::StringRef path);

/// `bytes` row-major. Written to a temporary file first, see AtomicFile. Errors: FileError (write); FileContentError
/// for a type NumPy does not have or a byte count that does not belong to the shape.
llvm::Error writeNpy(llvm::StringRef path, ir::DType dtype, llvm::ArrayRef<int64_t> shape,
                     llvm::ArrayRef<uint8_t> bytes);

} // namespace fusor::runtime
