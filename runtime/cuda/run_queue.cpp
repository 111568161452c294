#include "runtime/cuda/run_queue.h"
#include "llvm/ADT/ScopeExit.h"
#include <cstring>

namespace fusor::runtime {

llvm::Error RunQueue::upload(const DeviceBucket &bucket, llvm::ArrayRef<TensorView> inputs) {
  if (bucket.inputTotal == 0) return llvm::Error::success();
  auto to = uploads_.fill(context_, bucket.inputTotal);
  if (!to) return to.takeError();
  for (unsigned i = 0; i < inputs.size(); ++i)
    std::memcpy(*to + bucket.inputOffsets[i], inputs[i].data, inputs[i].bytes());
  return uploads_.send(stream_, bucket.io.address(), bucket.inputTotal);
}

llvm::Expected<unsigned> RunQueue::add(const ir::Function &function, const DeviceBucket &bucket) {
  Unread run{&function, &bucket};
  if (!bucket.outputOffsets.empty()) {
    auto download = downloads_.fetch(context_, stream_, bucket.io.address() + bucket.inputTotal,
                                     bucket.ioTotal - bucket.inputTotal);
    if (!download) return download.takeError();
    run.download = *download;
  }
  unread_[++last_] = run;
  return last_;
}

std::optional<RunQueue::Unread> RunQueue::take(unsigned number) {
  auto found = unread_.find(number);
  if (found == unread_.end()) return std::nullopt;
  Unread run = found->second;
  unread_.erase(found);
  return run;
}

llvm::Error RunQueue::read(const Unread &run, llvm::ArrayRef<TensorView> outputs) {
  if (!run.download) return llvm::Error::success();
  auto release = llvm::make_scope_exit([&] { drop(run); });
  auto from = downloads_.wait(*run.download, llvm::Twine("@") + run.function->name());
  if (!from) return from.takeError();
  for (unsigned i = 0; i < outputs.size(); ++i)
    std::memcpy(outputs[i].data, *from + (run.bucket->outputOffsets[i] - run.bucket->inputTotal), outputs[i].bytes());
  return llvm::Error::success();
}

} // namespace fusor::runtime
