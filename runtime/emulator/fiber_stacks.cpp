#include "runtime/emulator/fiber_stacks.h"
#include "runtime/emulator/sanitizer.h"
#include <new>
#include <sys/mman.h>

using namespace fusor::emulator;

// A GEMM tile's registers are arrays on the host stack; instrumented code needs more. Untouched pages cost nothing.
static constexpr size_t kStackBytes = kAddressSanitizer ? 256 * 1024 : 64 * 1024;
static constexpr size_t kPageBytes = 4096;

FiberStacks &FiberStacks::pool() {
  static FiberStacks stacks;
  return stacks;
}

void FiberStacks::ensure(unsigned count) {
  while (stacks.size() < count) {
    void *mapped = mmap(nullptr, kPageBytes + kStackBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    mprotect(mapped, kPageBytes, PROT_NONE);
    stacks.push_back({static_cast<char *>(mapped) + kPageBytes, kStackBytes});
  }
}
