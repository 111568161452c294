#include "runtime/cuda/transfer.h"

namespace fusor::runtime {

namespace {

llvm::Error grow(const CudaContextRef &context, PinnedMemory &memory, int64_t &held, int64_t bytes, CudaEvent &event) {
  if (!event) {
    auto made = CudaEvent::create(context, false);
    if (!made) return made.takeError();
    event = std::move(*made);
  }
  if (memory && held >= bytes) return llvm::Error::success();
  auto made = PinnedMemory::allocate(context, bytes);
  if (!made) return made.takeError();
  memory = std::move(*made);
  held = bytes;
  return llvm::Error::success();
}

} // namespace

llvm::Expected<char *> UploadRing::fill(const CudaContextRef &context, int64_t bytes) {
  next_ = (next_ + 1) % slots_.size();
  Slot &slot = slots_[next_];
  if (slot.isInFlight)
    if (auto error = slot.copied.wait()) return error;
  slot.isInFlight = false;
  if (auto error = grow(context, slot.memory, slot.bytes, bytes, slot.copied)) return error;
  return slot.memory.data();
}

llvm::Error UploadRing::send(const CudaStream &stream, DevicePointer to, int64_t bytes) {
  Slot &slot = slots_[next_];
  if (auto error = stream.upload(to, slot.memory.data(), bytes)) return error;
  slot.isInFlight = true;
  return stream.record(slot.copied);
}

} // namespace fusor::runtime
