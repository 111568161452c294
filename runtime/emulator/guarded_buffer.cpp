#include "runtime/emulator/guarded_buffer.h"
#include "runtime/emulator/sanitizer.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstdlib>
#include <new>

using namespace fusor::emulator;

static constexpr size_t kGuardBytes = 256; // also the alignment
static constexpr unsigned char kGuardByte = 0xa5;

static size_t roundedUp(size_t bytes) { return (bytes + kGuardBytes - 1) / kGuardBytes * kGuardBytes; }

GuardedBuffer::GuardedBuffer(size_t bytes) : bytes(bytes) {
  size_t total = kGuardBytes + roundedUp(bytes) + kGuardBytes;
  allocation = std::aligned_alloc(kGuardBytes, total);
  if (!allocation) throw std::bad_alloc();
  auto *first = static_cast<unsigned char *>(allocation);
  begin = first + kGuardBytes;
  std::memset(first, kGuardByte, total);
  std::memset(begin, 0xff, bytes);
  poison(first, kGuardBytes);
  poison(first + kGuardBytes + bytes, total - kGuardBytes - bytes);
}

GuardedBuffer::GuardedBuffer(GuardedBuffer &&other) noexcept
    : bytes(other.bytes), allocation(other.allocation), begin(other.begin) {
  other.allocation = other.begin = nullptr;
  other.bytes = 0;
}

GuardedBuffer::~GuardedBuffer() {
  if (!allocation) return;
  unpoison(allocation, kGuardBytes + roundedUp(bytes) + kGuardBytes);
  std::free(allocation);
}

llvm::Error GuardedBuffer::check(const llvm::Twine &who) const {
  const auto *first = static_cast<const unsigned char *>(begin), *end = first + bytes;
  const size_t after = roundedUp(bytes) + kGuardBytes - bytes;
  unpoison(first - kGuardBytes, kGuardBytes);
  unpoison(end, after);
  size_t below = 0, above = 0; // distance of the farthest changed byte
  for (size_t i = 1; i <= kGuardBytes; ++i)
    if (first[-static_cast<ptrdiff_t>(i)] != kGuardByte) below = i;
  for (size_t i = 0; i < after; ++i)
    if (end[i] != kGuardByte) above = i + 1;
  poison(first - kGuardBytes, kGuardBytes);
  poison(end, after);
  if (!below && !above) return llvm::Error::success();
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 llvm::formatv("{0}: wrote {1} byte(s) {2} a buffer of {3} bytes", who,
                                               above ? above : below, above ? "past the end of" : "before the start of",
                                               bytes)
                                     .str());
}
