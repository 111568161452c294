#include "runtime/cuda/run_queue.h"
#include <cstring>

namespace fusor::runtime {

llvm::Expected<HostSide *> RunQueue::next(DeviceBucket &bucket) {
  if (bucket.ioTotal == 0) return nullptr;
  HostSide &side = bucket.sides[bucket.turn];
  if (auto error = empty(bucket, side)) return error;
  if (!side.memory) {
    auto memory = PinnedMemory::allocate(context_, bucket.ioTotal);
    if (!memory) return memory.takeError();
    auto done = CudaEvent::create(context_, false);
    if (!done) return done.takeError();
    side.memory = std::move(*memory), side.done = std::move(*done);
  }
  return &side;
}

llvm::Expected<HostSide *> RunQueue::fill(DeviceBucket &bucket, llvm::ArrayRef<TensorView> inputs) {
  auto side = next(bucket);
  if (!side || !*side) return side;
  bucket.turn = (bucket.turn + 1) % std::size(bucket.sides);
  for (unsigned i = 0; i < inputs.size(); ++i)
    if (char *to = (*side)->memory.data() + bucket.inputOffsets[i]; to != inputs[i].data)
      std::memcpy(to, inputs[i].data, inputs[i].bytes());
  return side;
}

// Until the device has read and written what it has to, and nobody's results are lost.
llvm::Error RunQueue::empty(const DeviceBucket &bucket, HostSide &side) {
  if (!side.isInFlight) return llvm::Error::success();
  if (auto error = side.done.wait("an earlier run")) return error;
  side.isInFlight = false;
  for (auto &[number, run] : unread_) {
    if (run.side != &side) continue;
    run.kept.assign(side.memory.data() + bucket.inputTotal, side.memory.data() + bucket.ioTotal);
    run.side = nullptr;
  }
  return llvm::Error::success();
}

llvm::Expected<unsigned> RunQueue::add(const ir::Function &function, const DeviceBucket &bucket, HostSide *side,
                                       const CudaStream &stream) {
  if (side) {
    if (auto error = stream.record(side->done)) return error;
    side->isInFlight = true;
  }
  unread_[++last_] = {&function, &bucket, side, {}};
  return last_;
}

std::optional<RunQueue::Unread> RunQueue::take(unsigned number) {
  auto found = unread_.find(number);
  if (found == unread_.end()) return std::nullopt;
  Unread run = std::move(found->second);
  unread_.erase(found);
  return run;
}

llvm::Error RunQueue::read(const Unread &run, llvm::ArrayRef<TensorView> outputs) {
  if (run.side)
    if (auto error = run.side->done.wait(llvm::Twine("@") + run.function->name())) return error;
  const char *from = run.side ? run.side->memory.data() + run.bucket->inputTotal : run.kept.data();
  for (unsigned i = 0; i < outputs.size(); ++i)
    std::memcpy(outputs[i].data, from + (run.bucket->outputOffsets[i] - run.bucket->inputTotal), outputs[i].bytes());
  return llvm::Error::success();
}

} // namespace fusor::runtime
