// From bytes to the messages of a model: the only place that parses protobuf.
#pragma once
#include "frontend/onnx/tensor.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace fusor::onnx {

class Model;
struct FreeModel {
  void operator()(Model *model) const;
};
using ModelPointer = std::unique_ptr<Model, FreeModel>;

/// The model in `bytes`. Nothing of its content has been looked at.
llvm::Expected<ModelPointer> parseModelFile(llvm::StringRef bytes);
/// A file that is one tensor: inputs and outputs of the standard node tests.
llvm::Expected<Data> parseTensorFile(llvm::StringRef bytes);

} // namespace fusor::onnx
