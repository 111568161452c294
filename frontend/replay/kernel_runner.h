// Runs the launches of a step by themselves: on a GPU, or in the emulator.
#pragma once
#include "frontend/replay/replay_case.h"
#include "runtime/cuda/cuda_program.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace fusor::frontend {

/// The text of a kernel by its name.
using TextOf = llvm::function_ref<llvm::StringRef(const std::string &kernel)>;

struct ReplayedRun {
  std::vector<std::vector<char>> outputs;
  double ms = 0; // of all launches of the step; median of several runs on a GPU, one run in the emulator
};

/// Every buffer starts as 0xff, NaN in every floating-point type, with guards around it. Errors: KernelCompileError and
/// what the emulator finds (a write past an end, threads at different barriers, ...), as the user's. `folder`: of the
/// compiled libraries.
llvm::Expected<ReplayedRun> runInEmulator(const ReplayCase &given, TextOf text, const std::string &folder);

/// Errors: KernelCompileError, DeviceError.
llvm::Expected<ReplayedRun> runOnGpu(const ReplayCase &given, TextOf text, const runtime::CudaPlatform &platform);

} // namespace fusor::frontend
