// Runs on their way: inputs go up, results come down, and nobody waits but who reads results.
#pragma once
#include "runtime/cuda/device_bucket.h"
#include "runtime/cuda/transfer.h"
#include "runtime/execute/tensor_view.h"

namespace fusor::runtime {

class RunQueue {
public:
  /// A run whose results were not read yet.
  struct Unread {
    const ir::Function *function = nullptr;
    const DeviceBucket *bucket = nullptr;
    std::optional<unsigned> download = {}; // number in downloads_; none without results
  };

  RunQueue(CudaContextRef context, const CudaStream &stream) : context_(std::move(context)), stream_(stream) {}

  /// Puts the copy of `inputs` to the device on the stream; their memory is the caller's again.
  llvm::Error upload(const DeviceBucket &bucket, llvm::ArrayRef<TensorView> inputs);
  /// Behind the launches of a run: puts the copy of its results on the stream. The run's number, from 1.
  llvm::Expected<unsigned> add(const ir::Function &function, const DeviceBucket &bucket);
  /// Takes run `number` out; none when it is not there.
  std::optional<Unread> take(unsigned number);
  /// Waits for a run that was taken, and copies its results.
  llvm::Error read(const Unread &run, llvm::ArrayRef<TensorView> outputs);
  /// Gives up the results of a run that was taken.
  void drop(const Unread &run) {
    if (run.download) downloads_.release(*run.download);
  }

private:
  CudaContextRef context_;
  const CudaStream &stream_;
  UploadRing uploads_{2};
  Downloads downloads_;
  std::map<unsigned, Unread> unread_;
  unsigned last_ = 0;
};

} // namespace fusor::runtime
