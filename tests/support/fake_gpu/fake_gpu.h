// A device for CudaProgram where there is none: its memory is the host's, its kernels run in the emulator.
//
//   FakeGpu gpu;                                   // one at a time in a process
//   auto context = CudaContext::around(gpu.functions(), gpu.device());
//   gpu.calls                                      // "launch add__f32 4x256", "capture", "graph 12", "upload 64", ...
//
// A module's image is CUDA text: emulate kernels by giving CudaProgram a compiler that returns the source. Streams do
// at once what they are told, or record it while they capture.
#pragma once
#include "runtime/cuda/driver.h"
#include <functional>
#include <string>
#include <vector>

namespace fusor::tests {

class FakeGpu {
public:
  FakeGpu();
  ~FakeGpu();
  FakeGpu(const FakeGpu &) = delete;

  runtime::DriverFunctions functions() const;
  runtime::CudaDevice device() const;

  std::vector<std::string> calls;
  int64_t memoryBytes = int64_t(1) << 30; // what allocations may have together
  int64_t allocatedBytes = 0;
  std::string failing;   // the name of a call that fails, "cuLaunchKernel"
  int failingCode = 719; // with this code: launch failed; 2 is out of memory
  int openHandles = 0;   // allocations, modules, streams, events and graphs that were not given back
  /// Calls whose text begins with `prefix`.
  int count(llvm::StringRef prefix) const;
};

} // namespace fusor::tests
