// Kernels as text -> cubins, in several threads, through the cache of all processes.
#pragma once
#include "codegen/emit/kernel.h"
#include "runtime/cache/cache.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/execute/program.h"
#include <functional>

namespace fusor::runtime {

/// Compiles one kernel; called from several threads. NVRTC, or in tests something else.
using KernelCompiler = std::function<llvm::Expected<CompiledKernel>(const KernelSource &)>;

struct KernelBuild {
  KernelCompiler compile;
  std::string compilerVersion;      // of NVRTC: part of the cache's keys
  std::string arch;                 // "sm_90a", "compute_75"
  std::vector<std::string> options; // of NVRTC
  Cache *cache = nullptr;           // null: none
  unsigned threads = 0;             // 0: all of the machine's
};

/// One image a kernel, in their order. Errors: KernelCompileError of the first kernel that does not compile, and where
/// its text is kept.
llvm::Expected<std::vector<std::string>> buildKernels(llvm::ArrayRef<const codegen::Kernel *> kernels,
                                                      const KernelBuild &build, CompileStats &stats);

/// What to compile for on `target`, "sm_90a", by a compiler that knows `supported`: itself, or PTX of the newest known
/// architecture where the device is newer. Errors: DeviceError where the compiler has nothing that old.
llvm::Expected<std::string> archToCompileFor(llvm::StringRef target, llvm::ArrayRef<int> supported);

} // namespace fusor::runtime
