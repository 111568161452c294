#include "runtime/cpu/scratch.h"
#include <cstdlib>
#include <memory>

namespace fusor::runtime {

namespace {
struct Free {
  void operator()(char *p) const { std::free(p); }
};
struct Buffer {
  std::unique_ptr<char, Free> data;
  int64_t bytes = 0;
};
} // namespace

char *threadScratch(ScratchUse use, int64_t bytes) {
  static thread_local Buffer buffers[3];
  Buffer &buffer = buffers[static_cast<int>(use)];
  if (buffer.bytes < bytes) {
    buffer.data.reset();
    buffer.bytes = (bytes + bytes / 2 + 4095) / 4096 * 4096;
    buffer.data.reset(static_cast<char *>(std::aligned_alloc(64, buffer.bytes)));
    if (!buffer.data) std::abort(); // a few KiB to MiB: the arena was refused long before
  }
  return buffer.data.get();
}

} // namespace fusor::runtime
