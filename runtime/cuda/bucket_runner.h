// How a bucket's launches are done: launch by launch, as one CUDA graph, with the time of each, or each checked against
// the reference.
#pragma once
#include "runtime/cuda/device_bucket.h"
#include "runtime/cuda/nvtx.h"
#include "runtime/execute/program.h"

namespace fusor::runtime {

class BucketRunner {
public:
  BucketRunner(CudaContextRef context, const CudaStream &stream, const DeviceBuffers &shared,
               const CompileOptions &options, const StepCapture &capture, const Nvtx *nvtx)
      : context_(std::move(context)), stream_(stream), shared_(shared), options_(options), capture_(capture),
        nvtx_(nvtx) {}

  /// Puts all of it on the stream: the first time launch by launch, so that a failure names its kernel; later as one
  /// graph. The caller's inputs come from `side` and its results go there, unless it is null. With options.profile it
  /// waits, and `times` has each launch. Where contents are captured, it goes step by step. `function` is its name, for
  /// messages.
  llvm::Error run(DeviceBucket &bucket, HostSide *side, llvm::StringRef function, std::vector<StepTime> &times);

  /// Of the last run: steps, and calls from the host.
  unsigned kernels() const { return kernels_; }
  unsigned launches() const { return launches_; }
  /// With options.check: what made the first NaN or Inf.
  const std::optional<NonFiniteOp> &firstNonFinite() const { return firstNonFinite_; }

private:
  llvm::Error put(const DeviceBucket &bucket, const DeviceLaunch &launch);
  llvm::Error copyInputs(const DeviceBucket &bucket, const HostSide *side);
  llvm::Error copyResults(const DeviceBucket &bucket, const HostSide *side);
  llvm::Error launchGraph(DeviceBucket &bucket, HostSide *side, bool timed);
  llvm::Expected<CudaGraph> capture(DeviceBucket &bucket, const HostSide *side, bool timed);
  llvm::Error putAll(DeviceBucket &bucket, bool timed, bool inGraph);
  llvm::Error collectTimes(const DeviceBucket &bucket, std::vector<StepTime> &times);
  llvm::Error runStepByStep(const DeviceBucket &bucket, llvm::StringRef function);
  llvm::Error checkStep(const DeviceBucket &bucket, const DeviceBucket::Step &step, llvm::StringRef function,
                        llvm::function_ref<llvm::Error()> put);
  llvm::Error captureStep(const DeviceBucket &bucket, size_t first, size_t end);
  llvm::Error runOnHost(const DeviceBucket &bucket, const DeviceBucket::Step &step);
  llvm::Error fetch(const DeviceBucket &bucket, llvm::ArrayRef<unsigned> buffers, llvm::ArrayRef<ir::Value> values,
                    std::vector<std::vector<char>> &to);

  CudaContextRef context_;
  const CudaStream &stream_;
  const DeviceBuffers &shared_;
  const CompileOptions &options_;
  const StepCapture &capture_;
  const Nvtx *nvtx_;
  unsigned kernels_ = 0, launches_ = 0;
  std::optional<NonFiniteOp> firstNonFinite_;
};

} // namespace fusor::runtime
