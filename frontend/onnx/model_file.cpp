#include "frontend/onnx/model_file.h"
#include "frontend/onnx/error.h"
#include "frontend/onnx/limits.h"
#include "model.pb.h"
#include <cerrno>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <unistd.h>

namespace fusor::onnx {
namespace {

constexpr int64_t kTakenBytes = 1 << 16; // smaller ones may be there twice

bool parse(google::protobuf::MessageLite &message, google::protobuf::io::CodedInputStream &stream) {
  stream.SetRecursionLimit(kMaxNesting);
  return message.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
}

bool parse(google::protobuf::MessageLite &message, llvm::StringRef bytes) {
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t *>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  return parse(message, stream);
}

class FileStream : public google::protobuf::io::CopyingInputStream {
public:
  explicit FileStream(int file) : file_(file) {}
  int Read(void *buffer, int size) override {
    for (;;) {
      const ssize_t n = read(file_, buffer, size);
      if (n >= 0 || errno != EINTR) return static_cast<int>(n);
    }
  }

private:
  int file_;
};

} // namespace

void FreeModel::operator()(Model *model) const { delete model; }

llvm::Expected<ModelPointer> parseModelFile(llvm::StringRef bytes) {
  if (static_cast<int64_t>(bytes.size()) > kMaxModelBytes)
    return problem("is larger than 2 GiB, the limit of the format; its weights belong in side files");
  ModelPointer model(new Model);
  if (!parse(*model, bytes)) return problem("is no ONNX model, or is cut off: its protobuf does not parse");
  return model;
}

llvm::Expected<ModelPointer> parseModelFile(int file) {
  FileStream bytes(file);
  google::protobuf::io::CopyingInputStreamAdaptor buffered(&bytes);
  google::protobuf::io::CodedInputStream stream(&buffered);
  ModelPointer model(new Model);
  if (!parse(*model, stream)) return problem("is no ONNX model, or is cut off: its protobuf does not parse");
  return model;
}

TakenTensors takeInitializers(Model &model) {
  TakenTensors taken;
  for (Tensor &tensor : *model.mutable_graph()->mutable_initializer()) {
    if (static_cast<int64_t>(tensor.raw_data().size()) < kTakenBytes || tensor.data_location() != 0) continue;
    auto data = readTensor(tensor, "");
    if (!data) { // said when the importer comes to it
      llvm::consumeError(data.takeError());
      continue;
    }
    taken.emplace(&tensor, std::move(*data));
    delete tensor.release_raw_data(); // clear_raw_data() would keep its memory
  }
  return taken;
}

llvm::Expected<Data> parseTensorFile(llvm::StringRef bytes) {
  Tensor tensor;
  if (!parse(tensor, bytes)) return problem("is no tensor: its protobuf does not parse");
  return readTensor(tensor, "");
}

} // namespace fusor::onnx
