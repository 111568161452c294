#include "runtime/cuda/cuda_program.h"
#include "llvm/Support/FormatVariadic.h"

namespace fusor::runtime {

using ir::ArchTier;

ir::Target cudaTarget(const CudaDevice &device, ArchTier limit) {
  ir::Target target;
  target.kind = ir::DeviceKind::cuda;
  int arch = device.arch();
  ArchTier best = arch == 90 ? ArchTier::sm90a : arch >= 80 ? ArchTier::sm80 : ArchTier::simt;
  target.tier = std::min(best, limit);
  // What Hopper alone has is behind sm_90a; code for it runs on no other device.
  target.arch =
      limit == ArchTier::simt && arch > 75 ? "compute_75" : "sm_" + std::to_string(arch) + (arch == 90 ? "a" : "");
  target.hasFp8 = arch >= 89 && target.tier != ArchTier::simt;
  target.hasCublasLt = arch >= 75;
  target.sharedBytesPerBlock = device.sharedBytesPerBlock;
  target.multiprocessors = device.multiprocessors;
  return target;
}

llvm::Expected<CudaPlatform> openCudaPlatform(const ir::Target &target, const CompileOptions &options) {
  CudaPlatform platform;
  auto context = CudaContext::open(options.device);
  if (!context) return context.takeError();
  platform.context = *context;
  platform.nvtx = Nvtx::ofThisProcess();

  NvrtcOptions nvrtcOptions = NvrtcOptions::fromEnvironment();
  nvrtcOptions.newestMajor = (*context)->driverVersion() / 1000;
  auto nvrtc = loadNvrtc(nvrtcOptions);
  if (!nvrtc) return nvrtc.takeError();
  auto arch = archToCompileFor(target.arch, nvrtc->supportedArchs());
  if (!arch) return arch.takeError();
  platform.arch = std::move(*arch);
  platform.compilerVersion = nvrtc->version();
  platform.compile = [nvrtc = *nvrtc](const KernelSource &kernel) { return nvrtc.compile(kernel); };

  std::string root = options.cacheDir.empty() ? Cache::defaultRoot() : options.cacheDir;
  if (!root.empty()) {
    auto cache = Cache::open(root);
    if (cache)
      platform.cache = std::move(*cache);
    else
      platform.notes.push_back("cache: compiled kernels are not kept: " + llvm::toString(cache.takeError()));
  }
  if (!options.ownGemm && target.hasCublasLt) {
    auto cublasLt = CublasLt::load(*context);
    if (cublasLt)
      platform.cublasLt = std::move(*cublasLt);
    else
      platform.notes.push_back("GEMMs use fusor's own kernels, which are several times slower: " +
                               llvm::toString(cublasLt.takeError()));
  }
  return platform;
}

} // namespace fusor::runtime
