// Runs on their way: inputs go up, results come down, and nobody waits but who reads results.
#pragma once
#include "runtime/cuda/device_bucket.h"
#include "runtime/execute/tensor_view.h"

namespace fusor::runtime {

class RunQueue {
public:
  /// A run whose results were not read yet.
  struct Unread {
    const ir::Function *function = nullptr;
    const DeviceBucket *bucket = nullptr;
    HostSide *side = nullptr; // where its results arrive; null without results, or when they are in `kept`
    std::vector<char> kept;
  };

  explicit RunQueue(CudaContextRef context) : context_(std::move(context)) {}

  /// The side of `bucket` that is next, and nobody's. Waits only where all sides are in flight; results that lie there
  /// unread are kept. Null where a run has neither inputs nor results.
  llvm::Expected<HostSide *> next(DeviceBucket &bucket);
  /// The next side, with `inputs` in it: their memory is the caller's again. What lies there already is
  /// not copied.
  llvm::Expected<HostSide *> fill(DeviceBucket &bucket, llvm::ArrayRef<TensorView> inputs);
  /// Behind the copies and launches of a run. The run's number, from 1.
  llvm::Expected<unsigned> add(const ir::Function &function, const DeviceBucket &bucket, HostSide *side,
                               const CudaStream &stream);
  /// Takes run `number` out; none when it is not there. Its results are given up with it.
  std::optional<Unread> take(unsigned number);
  /// Waits for a run that was taken, and copies its results.
  llvm::Error read(const Unread &run, llvm::ArrayRef<TensorView> outputs);

private:
  llvm::Error empty(const DeviceBucket &bucket, HostSide &side);
  CudaContextRef context_;
  std::map<unsigned, Unread> unread_;
  unsigned last_ = 0;
};

} // namespace fusor::runtime
