// A Program on an NVIDIA GPU. See runtime/execute/program.h for what it does, runtime/README.md for how.
//
//   compile   every op gets its code (device_code.h), kernels are compiled together (kernel_build.h), one module each
//   run       bucket by sizes (device_bucket.h): the first time launch by launch, then one CUDA graph; inputs go up in
//   one
//             copy, results come down in one
#pragma once
#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/kernel_build.h"
#include "runtime/cuda/nvtx.h"
#include "runtime/execute/program.h"

namespace fusor::runtime {

/// What `device` can do. `limit`: the best tier to use; simt means any GPU's instructions only (compute_75).
ir::Target cudaTarget(const CudaDevice &device, ir::ArchTier limit = ir::ArchTier::sm90a);

/// What a program stands on.
struct CudaPlatform {
  CudaContextRef context;
  KernelCompiler compile;
  std::string compilerVersion, arch;
  std::shared_ptr<Cache> cache;             // null: none
  std::shared_ptr<const CublasLt> cublasLt; // null: own GEMMs
  const Nvtx *nvtx = nullptr;               // who wants to know what the host does; null: nobody
  std::vector<std::string> notes;
};
/// Opens device `options.device`, NVRTC, the cache and cuBLASLt. Errors: DeviceError with what was searched. Without
/// cuBLASLt, and with a cache that cannot be opened, it goes on and says so in `notes`.
llvm::Expected<CudaPlatform> openCudaPlatform(const ir::Target &target, const CompileOptions &options);

llvm::Expected<std::unique_ptr<Program>> compileForCuda(std::unique_ptr<ir::Module> fused, const ir::Target &target,
                                                        CompileOptions options, CudaPlatform platform);

} // namespace fusor::runtime
