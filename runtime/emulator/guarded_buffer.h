// Device memory of an emulated kernel: exactly `bytes` usable bytes at a 256-byte boundary (what cuMemAlloc gives),
// with guard bytes on both sides. Under AddressSanitizer the guards are poisoned too, so the access itself is reported.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include <cstddef>
#include <cstring>

namespace fusor::emulator {

class GuardedBuffer {
public:
  // Filled with 0xff: NaN in every floating-point type, so that an element nobody wrote is seen.
  explicit GuardedBuffer(size_t bytes);
  template <class T> static GuardedBuffer of(llvm::ArrayRef<T> values) {
    GuardedBuffer buffer(values.size() * sizeof(T));
    if (!values.empty()) std::memcpy(buffer.data(), values.data(), buffer.size());
    return buffer;
  }
  GuardedBuffer(GuardedBuffer &&other) noexcept;
  GuardedBuffer(const GuardedBuffer &) = delete;
  ~GuardedBuffer();

  void *data() const { return begin; }
  size_t size() const { return bytes; }
  void *const *address() const { return &begin; } // what a launch takes as the value of a pointer parameter
  template <class T> llvm::MutableArrayRef<T> as() const { return {static_cast<T *>(begin), bytes / sizeof(T)}; }

  // Error where a guard byte has changed: "`who`: wrote 4 bytes past the end of a buffer of 400 bytes".
  llvm::Error check(const llvm::Twine &who) const;

private:
  size_t bytes;
  void *allocation;
  void *begin;
};

} // namespace fusor::emulator
