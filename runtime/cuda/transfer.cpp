#include "runtime/cuda/transfer.h"
#include "llvm/ADT/STLExtras.h"

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

llvm::Expected<unsigned> Downloads::fetch(const CudaContextRef &context, const CudaStream &stream, DevicePointer from,
                                          int64_t bytes) {
  auto free = llvm::find_if(slots_, [](const Slot &slot) { return slot.isFree; });
  if (free == slots_.end()) {
    slots_.emplace_back();
    free = std::prev(slots_.end());
  }
  if (auto error = grow(context, free->memory, free->bytes, bytes, free->arrived)) return error;
  if (auto error = stream.download(free->memory.data(), from, bytes)) return error;
  if (auto error = stream.record(free->arrived)) return error;
  free->isFree = false;
  return static_cast<unsigned>(free - slots_.begin());
}

llvm::Expected<const char *> Downloads::wait(unsigned number, const llvm::Twine &what) const {
  const Slot &slot = slots_[number];
  if (auto error = slot.arrived.wait(what)) return error;
  return slot.memory.data();
}

} // namespace fusor::runtime
