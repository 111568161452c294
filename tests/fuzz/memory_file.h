// Bytes as a file that has a path, for readers that take one; it lives in memory.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace fusor::fuzz {

class MemoryFile {
public:
  MemoryFile(const uint8_t *data, size_t size) : descriptor(memfd_create("fuzz", 0)) {
    if (descriptor < 0 || write(descriptor, data, size) != ssize_t(size)) std::abort();
  }
  MemoryFile(const MemoryFile &) = delete;
  ~MemoryFile() { close(descriptor); }
  std::string path() const { return llvm::formatv("/proc/self/fd/{0}", descriptor); }

private:
  int descriptor;
};

/// Reads every byte, so that AddressSanitizer or the kernel sees one that is not there.
inline void readAll(llvm::ArrayRef<uint8_t> bytes) {
  volatile uint8_t sink = 0;
  for (uint8_t byte : bytes) sink = sink ^ byte;
}

} // namespace fusor::fuzz
