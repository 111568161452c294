// From bytes to the messages of a model: the only place that parses protobuf.
#pragma once
#include "frontend/onnx/tensor.h"
#include "llvm/Support/Error.h"
#include <map>
#include <memory>

namespace fusor::onnx {

class Model;
struct FreeModel {
  void operator()(Model *model) const;
};
using ModelPointer = std::unique_ptr<Model, FreeModel>;

/// The model in `bytes`. Nothing of its content has been looked at.
llvm::Expected<ModelPointer> parseModelFile(llvm::StringRef bytes);
/// The same from an open file, which is read as it is parsed.
llvm::Expected<ModelPointer> parseModelFile(int file);

/// The content of the graph's large initializers, taken out of their messages: a model's weights are there once.
using TakenTensors = std::map<const Tensor *, Data>;
TakenTensors takeInitializers(Model &model);

/// A file that is one tensor: inputs and outputs of the standard node tests.
llvm::Expected<Data> parseTensorFile(llvm::StringRef bytes);

} // namespace fusor::onnx
