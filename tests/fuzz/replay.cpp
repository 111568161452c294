// The main program of a fuzz target where there is no libFuzzer: runs it on every file of a corpus folder, and on each
// file cut short and with single bytes changed, so that the code is on its wrong paths too. It fails by crashing.
#include "llvm/Support/MemoryBuffer.h"
#include <cstdio>
#include <filesystem>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argumentCount, char **arguments) {
  if (argumentCount != 2) return std::fprintf(stderr, "usage: %s CORPUS-FOLDER\n", arguments[0]), 64;
  int files = 0, inputs = 0;
  auto run = [&](const std::vector<uint8_t> &bytes) {
    ++inputs;
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  };
  for (const auto &entry : std::filesystem::directory_iterator(arguments[1])) {
    auto file = llvm::MemoryBuffer::getFile(entry.path().string());
    if (!file) return std::fprintf(stderr, "cannot read %s\n", entry.path().c_str()), 1;
    const std::vector<uint8_t> bytes((*file)->getBuffer().bytes_begin(), (*file)->getBuffer().bytes_end());
    ++files;
    run(bytes);
    const size_t step = bytes.size() / 500 + 1;
    for (size_t at = 0; at < bytes.size(); at += step) {
      run({bytes.begin(), bytes.begin() + at});
      for (int flip : {0x01, 0x20, 0x80}) {
        std::vector<uint8_t> changed = bytes;
        changed[at] ^= flip;
        run(changed);
      }
    }
  }
  std::printf("%d files, %d inputs\n", files, inputs);
  return files ? 0 : 1; // an empty corpus tests nothing
}
