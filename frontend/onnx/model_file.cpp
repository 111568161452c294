#include "frontend/onnx/model_file.h"
#include "frontend/onnx/error.h"
#include "frontend/onnx/limits.h"
#include "model.pb.h"
#include <google/protobuf/io/coded_stream.h>

namespace fusor::onnx {
namespace {

bool parse(google::protobuf::MessageLite &message, llvm::StringRef bytes) {
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t *>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetRecursionLimit(kMaxNesting);
  return message.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
}

} // namespace

void FreeModel::operator()(Model *model) const { delete model; }

llvm::Expected<ModelPointer> parseModelFile(llvm::StringRef bytes) {
  if (static_cast<int64_t>(bytes.size()) > kMaxModelBytes)
    return problem("is larger than 2 GiB, the limit of the format; its weights belong in side files");
  ModelPointer model(new Model);
  if (!parse(*model, bytes)) return problem("is no ONNX model, or is cut off: its protobuf does not parse");
  return model;
}

llvm::Expected<Data> parseTensorFile(llvm::StringRef bytes) {
  Tensor tensor;
  if (!parse(tensor, bytes)) return problem("is no tensor: its protobuf does not parse");
  return readTensor(tensor, "");
}

} // namespace fusor::onnx
