// A .npy file is hostile until checked: whatever readNpy() accepts can be read to its last byte and fits its shape.
#include "runtime/checkpoint/npy.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fusor::fuzz::MemoryFile memory(data, size);
  auto array = fusor::runtime::readNpy(memory.path());
  if (!array) {
    if (llvm::toString(array.takeError()).empty()) std::abort(); // refused without a word
    return 0;
  }
  fusor::fuzz::readAll(array->bytes);
  if (array->bytes.size() != fusor::runtime::tensorBytes(array->dtype, array->shape)) std::abort();
  return 0;
}
