// The way of small things between the host and a stream, without waiting: pinned memory in turn.
#pragma once
#include "runtime/cuda/driver.h"

namespace fusor::runtime {

/// To the device. The host fills one buffer while the device may still read the others.
///
///   auto at = ring.fill(context, bytes);  memcpy(*at, ...);  ring.send(stream, address, bytes);
class UploadRing {
public:
  explicit UploadRing(unsigned buffers) : slots_(buffers) {}

  /// Host memory of at least `bytes`; waits only where the device has not yet read what was in it.
  llvm::Expected<char *> fill(const CudaContextRef &context, int64_t bytes);
  /// Puts the copy of what the last fill() gave on the stream.
  llvm::Error send(const CudaStream &stream, DevicePointer to, int64_t bytes);

private:
  struct Slot {
    PinnedMemory memory;
    int64_t bytes = 0;
    CudaEvent copied;
    bool isInFlight = false;
  };
  std::vector<Slot> slots_;
  unsigned next_ = 0;
};

/// From the device: results that are read when somebody asks for them, by number.
class Downloads {
public:
  /// Puts the copy of `bytes` at `from` on the stream. The number is the caller's until release().
  llvm::Expected<unsigned> fetch(const CudaContextRef &context, const CudaStream &stream, DevicePointer from,
                                 int64_t bytes);
  /// Waits until all that was put on the stream up to fetch() is done; what it copied. `what` is for messages.
  llvm::Expected<const char *> wait(unsigned number, const llvm::Twine &what) const;
  void release(unsigned number) { slots_[number].isFree = true; }

private:
  struct Slot {
    PinnedMemory memory;
    int64_t bytes = 0;
    CudaEvent arrived;
    bool isFree = true;
  };
  std::vector<Slot> slots_;
};

} // namespace fusor::runtime
