// The way of small things from the host to a stream, without waiting: pinned memory in turn.
#pragma once
#include "runtime/cuda/driver.h"

namespace fusor::runtime {

/// The host fills one buffer while the device may still read the others.
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

} // namespace fusor::runtime
