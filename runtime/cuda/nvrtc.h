// NVRTC, NVIDIA's run-time compiler of CUDA text, opened with dlopen. Needs no CUDA header to build and no GPU to run.
//
//   auto nvrtc = loadNvrtc(NvrtcOptions::fromEnvironment());
//   auto kernel = nvrtc->compile({.source = text, .name = "add__f32", .arch = "sm_90a"});
#pragma once
#include "runtime/cuda/library_search.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace fusor::runtime {

struct NvrtcOptions {
  std::string path = {};                    ///< a file or a folder; if set, nothing else is tried
  std::vector<std::string> wheelRoots = {}; ///< further folders with unpacked nvidia-cuda-nvrtc wheels
  int requiredArch = 0;                     ///< 60: pass over a compiler that has no sm_60; 0: any
  int newestMajor = 0; ///< the driver's CUDA version: a newer compiler's cubins would not load; 0: any

  /// `path` from FUSOR_NVRTC.
  static NvrtcOptions fromEnvironment();
};

struct KernelSource {
  llvm::StringRef source;
  llvm::StringRef name; ///< of the file in messages, without ".cu"
  llvm::StringRef arch; ///< "sm_90a": a cubin for this device only; "compute_75": PTX for it and all newer ones
  llvm::ArrayRef<std::string> options = {}; ///< "--std=c++17", "--use_fast_math", ...
};

struct CompiledKernel {
  bool isPtx = false;
  std::string image; ///< cubin bytes or PTX text
  std::string log;   ///< warnings
};

/// NVRTC refused a kernel: our bug, or a limit of this NVRTC. Carries what a report needs.
class KernelCompileError : public llvm::ErrorInfo<KernelCompileError> {
public:
  static char ID;
  KernelCompileError(std::string kernel, std::string arch, std::string reason, std::string log)
      : kernelName(std::move(kernel)), archName(std::move(arch)), why(std::move(reason)), messages(std::move(log)) {}

  llvm::StringRef kernel() const { return kernelName; }
  llvm::StringRef arch() const { return archName; }
  llvm::StringRef reason() const { return why; } ///< "NVRTC_ERROR_COMPILATION"
  llvm::StringRef compilerLog() const { return messages; }

  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

private:
  std::string kernelName, archName, why, messages;
};

/// An open compiler. Copies share it; compile() may be called from several threads at once.
class Nvrtc {
public:
  int major() const;
  int minor() const;
  std::string version() const;                ///< "13.0"; part of every cache key
  std::string path() const;                   ///< the library's file
  llvm::ArrayRef<int> supportedArchs() const; ///< 75, 80, ..., in order
  bool supports(int arch) const { return llvm::is_contained(supportedArchs(), arch); }
  const SearchLog &search() const; ///< what was tried before it was found, itself last

  /// Errors: KernelCompileError.
  llvm::Expected<CompiledKernel> compile(const KernelSource &kernel) const;

private:
  friend llvm::Expected<Nvrtc> loadNvrtc(const NvrtcOptions &, SearchLog *);
  struct Api;
  std::shared_ptr<const Api> api;
};

/// Finds and opens NVRTC. The error lists every place that was tried and how to get one. `log` (may be null) receives
/// the places, also when it fails.
llvm::Expected<Nvrtc> loadNvrtc(const NvrtcOptions &options, SearchLog *log = nullptr);

} // namespace fusor::runtime
