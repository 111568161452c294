// fusor doctor: what is on this machine, what Fusor makes of it, and what to fix.
#include "frontend/cli/console.h"
#include "frontend/cli/verbs.h"
#include "runtime/cache/cache.h"
#include "runtime/cpu/isa.h"
#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/driver_probe.h"
#include "runtime/cuda/nvrtc.h"
#include "llvm/ADT/StringExtras.h"
#include <thread>

namespace fusor::frontend::cli {
namespace {

// Kernel tier, tensor cores and FP8 of a compute capability.
struct Mode {
  const char *tier;
  const char *tensorCores;
  bool nativeFp8;
};
Mode modeOf(int arch) {
  if (arch == 90) return {"sm90a", "yes (wgmma)", true};
  if (arch >= 80) return {"sm80", "yes (mma.sync)", arch >= 89};
  return {"simt", arch >= 70 ? "not used below sm_80" : "none", false};
}

struct Findings {
  Console &console;
  std::vector<std::string> fixes;
  void line(const llvm::Twine &what, const llvm::Twine &found) {
    console.result(llvm::formatv("{0,-14} {1}", what.str(), found.str()));
  }
};

void describeDevice(Findings &f, const runtime::CudaDevice &d) {
  Mode mode = modeOf(d.arch());
  f.line("cuda:" + llvm::Twine(d.ordinal),
         llvm::formatv("{0}, compute capability {1}.{2}, {3} multiprocessors, {4}", d.name, d.major, d.minor,
                       d.multiprocessors, bytesText(d.memoryBytes))
             .str());
  f.line("", llvm::formatv("mode: tensor cores {0}, FP8 {1}, kernel tier {2}", mode.tensorCores,
                           mode.nativeFp8 ? "native" : "emulated", mode.tier)
                 .str());
  f.console.object({{"device", llvm::formatv("cuda:{0}", d.ordinal).str()},
                    {"name", d.name},
                    {"compute_capability", llvm::formatv("{0}.{1}", d.major, d.minor).str()},
                    {"multiprocessors", d.multiprocessors},
                    {"memory_bytes", d.memoryBytes},
                    {"tensor_cores", mode.tensorCores},
                    {"fp8", mode.nativeFp8 ? "native" : "emulated"},
                    {"tier", mode.tier},
                    {"usable", true}});
}

/// Where cuBLASLt is, and its version where a device is there to open it on.
std::string findCublasLt(const runtime::DriverProbe &driver, runtime::SearchLog &log) {
  if (driver.usable()) {
    auto context = runtime::CudaContext::open(driver.devices.front().ordinal);
    if (!context) return llvm::consumeError(context.takeError()), "";
    auto library = runtime::CublasLt::load(*context, &log);
    if (!library) return llvm::consumeError(library.takeError()), "";
    return llvm::formatv("cuBLASLt {0} at {1}", (*library)->version(), (*library)->path());
  }
  for (const std::string &place :
       runtime::libraryPlaces({.fileNames = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}})) {
    std::string why;
    if (runtime::Library library = runtime::Library::open(place, why)) return library.path();
    log.push_back({place, why});
  }
  return "";
}

} // namespace

int doctor(const CommonOptions &common) {
  Console console(common);
  Findings f{console, {}};
  std::string isa = runtime::isaName(runtime::bestIsa()).str();
  unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  f.line("cpu", llvm::formatv("{0} threads, GEMM kernels for {1}", threads, isa).str());
  f.line("", "mode: tensor cores none, FP8 emulated, kernel tier: blocked interpreter");
  console.object({{"device", "cpu"},
                  {"threads", threads},
                  {"isa", isa},
                  {"tensor_cores", "none"},
                  {"fp8", "emulated"},
                  {"tier", "interpreter"},
                  {"usable", true}});

  runtime::DriverProbe driver = runtime::probeCudaDriver();
  f.line("CUDA driver", driver.library.empty()
                            ? "not found: libcuda.so.1"
                            : llvm::formatv("{0}, supports CUDA {1}.{2}", driver.library, driver.driverVersion / 1000,
                                            driver.driverVersion % 1000 / 10)
                                  .str());
  for (const runtime::CudaDevice &device : driver.devices) describeDevice(f, device);
  if (!driver.usable()) f.fixes.push_back("GPU: " + driver.reason);

  runtime::SearchLog log;
  auto options = runtime::NvrtcOptions::fromEnvironment();
  options.newestMajor = driver.usable() ? driver.driverMajor() : 0;
  auto nvrtc = runtime::loadNvrtc(options, &log);
  std::string nvrtcPath, nvrtcVersion;
  if (nvrtc) {
    nvrtcPath = nvrtc->path(), nvrtcVersion = nvrtc->version();
    std::string archs =
        llvm::join(llvm::map_range(nvrtc->supportedArchs(), [](int a) { return std::to_string(a); }), ", ");
    f.line("NVRTC", llvm::formatv("{0} at {1}; compiles for {2}", nvrtcVersion, nvrtcPath, archs).str());
  } else {
    llvm::consumeError(nvrtc.takeError());
    f.line("NVRTC", "not found");
    f.fixes.push_back(
        "NVRTC: `make setup` fetches it from PyPI, or install the CUDA toolkit, or set FUSOR_NVRTC to its "
        "folder. Without it `fusor emit` writes sources and no cubins. Tried:\n" +
        runtime::searchText(log));
  }
  runtime::SearchLog ltLog;
  std::string cublasLt = findCublasLt(driver, ltLog);
  f.line("cuBLASLt", cublasLt.empty() ? "not found: GEMMs run on generated kernels" : cublasLt);
  if (cublasLt.empty() && driver.usable())
    f.fixes.push_back("cuBLASLt: install the CUDA toolkit or PyPI's nvidia-cublas, or set FUSOR_CUBLASLT to its file. "
                      "Tried:\n" +
                      runtime::searchText(ltLog));
  std::string cache = common.cache.empty() ? runtime::Cache::defaultRoot() : common.cache;
  f.line("cache", cache.empty() ? "none: set FUSOR_CACHE_DIR, XDG_CACHE_HOME or HOME" : cache);
  console.object({{"driver", driver.library},
                  {"driver_version", driver.driverVersion},
                  {"nvrtc", nvrtcPath},
                  {"nvrtc_version", nvrtcVersion},
                  {"cublaslt", cublasLt},
                  {"cache", cache},
                  {"fixes", llvm::json::Array(f.fixes)}});
  for (const std::string &fix : f.fixes) console.say("fix: " + llvm::Twine(fix));
  return 0;
}

} // namespace fusor::frontend::cli
