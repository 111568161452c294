// Tensors in side files. A location is a path below the model's folder and nothing else: no "..", no absolute path, no
// link of either kind, no device.
#pragma once
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace fusor::onnx {

class Tensor;

/// The `bytes` bytes of `tensor`, which is external. `folder` is the model's; empty: it was read from memory and has
/// none.
llvm::Expected<std::vector<char>> readExternal(const Tensor &tensor, llvm::StringRef folder, int64_t bytes);

} // namespace fusor::onnx
