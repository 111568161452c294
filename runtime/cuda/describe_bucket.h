// A bound bucket in words: Program::describe on a GPU.
#pragma once
#include "runtime/cuda/device_bucket.h"

namespace fusor::runtime {

/// `kernels` are the program's; those that the bucket launches are described, in order of first launch.
Description describeBucket(const ir::Function &function, const DeviceBucket &bucket,
                           llvm::ArrayRef<DeviceKernels::Kernel> kernels);

} // namespace fusor::runtime
