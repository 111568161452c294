// A checkpoint is hostile until checked: whatever open() accepts can be read to its last byte, and found by its name.
#include "runtime/checkpoint/safetensors.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fusor::fuzz::MemoryFile memory(data, size);
  auto file = fusor::runtime::SafetensorsFile::open(memory.path());
  if (!file) {
    if (llvm::toString(file.takeError()).empty()) std::abort(); // refused without a word
    return 0;
  }
  for (const auto &tensor : file->tensors()) {
    fusor::fuzz::readAll(tensor.bytes);
    if (file->find(tensor.info.name) != &tensor) std::abort();
    if (tensor.bytes.size() != fusor::runtime::tensorBytes(tensor.info.dtype, tensor.info.shape)) std::abort();
  }
  return 0;
}
