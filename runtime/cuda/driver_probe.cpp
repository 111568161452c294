#include "runtime/cuda/driver_probe.h"

#include "runtime/cuda/library_search.h"
#include "llvm/Support/FormatVariadic.h"

namespace fusor::runtime {
namespace {

/// As in cuda.h: results are enums with 0 for success, a device is an int.
using Result = int;
using Device = int;
constexpr Result kNotInitialized = 3, kStubLibrary = 34, kNoDevice = 100, kSystemNotReady = 802,
                 kSystemDriverMismatch = 803, kCompatNotSupported = 804;
constexpr int kMultiprocessorCount = 16, kL2CacheSize = 38, kCapabilityMajor = 75, kCapabilityMinor = 76,
              kSharedBytesPerBlockOptin = 97;

struct Driver {
  Library library;
  Result (*init)(unsigned flags);
  Result (*driverGetVersion)(int *);
  Result (*deviceGetCount)(int *);
  Result (*deviceGet)(Device *, int ordinal);
  Result (*deviceGetName)(char *, int length, Device);
  Result (*deviceGetAttribute)(int *, int attribute, Device);
  Result (*deviceTotalMem)(size_t *, Device);
  Result (*getErrorName)(Result, const char **);
  Result (*getErrorString)(Result, const char **);

  bool findAll() {
    return library.find("cuInit", init) && library.find("cuDriverGetVersion", driverGetVersion) &&
           library.find("cuDeviceGetCount", deviceGetCount) && library.find("cuDeviceGet", deviceGet) &&
           library.find("cuDeviceGetName", deviceGetName) && library.find("cuDeviceGetAttribute", deviceGetAttribute) &&
           library.find("cuDeviceTotalMem_v2", deviceTotalMem) && library.find("cuGetErrorName", getErrorName) &&
           library.find("cuGetErrorString", getErrorString);
  }

  /// "cuInit failed: no CUDA-capable device is detected (CUDA_ERROR_NO_DEVICE)", and what to do about it.
  std::string explain(const char *call, Result result) const {
    const char *name = nullptr, *text = nullptr;
    getErrorName(result, &name);
    getErrorString(result, &text);
    std::string message = llvm::formatv("{0} failed: {1} ({2})", call, text ? text : "unknown error",
                                        name ? std::string(name) : llvm::formatv("code {0}", result).str())
                              .str();
    switch (result) {
    case kNoDevice: return message + "; is CUDA_VISIBLE_DEVICES empty, or the device not passed into this container?";
    case kStubLibrary:
      return message + "; this is the toolkit's stub, not the driver: take its folder out of LD_LIBRARY_PATH";
    case kSystemDriverMismatch:
    case kCompatNotSupported:
      return message + "; the driver in the kernel and libcuda.so.1 are of different versions: reboot, or match them";
    case kSystemNotReady: return message + "; is nvidia-fabricmanager running?";
    case kNotInitialized:
    default: return message;
    }
  }

  /// Fills `device`; the name of the call that failed and its result, or null.
  const char *describe(int ordinal, CudaDevice &device, Result &result) const {
    Device handle = 0;
    device.ordinal = ordinal;
    if ((result = deviceGet(&handle, ordinal))) return "cuDeviceGet";
    char name[256] = {};
    if ((result = deviceGetName(name, sizeof name - 1, handle))) return "cuDeviceGetName";
    device.name = name;
    size_t bytes = 0;
    if ((result = deviceTotalMem(&bytes, handle))) return "cuDeviceTotalMem";
    device.memoryBytes = int64_t(bytes);
    int l2 = 0, shared = 0;
    struct {
      int attribute;
      int *value;
    } attributes[] = {{kCapabilityMajor, &device.major},
                      {kCapabilityMinor, &device.minor},
                      {kMultiprocessorCount, &device.multiprocessors},
                      {kL2CacheSize, &l2},
                      {kSharedBytesPerBlockOptin, &shared}};
    for (auto [attribute, value] : attributes)
      if ((result = deviceGetAttribute(value, attribute, handle))) return "cuDeviceGetAttribute";
    device.l2Bytes = l2;
    device.sharedBytesPerBlock = shared;
    return nullptr;
  }
};

} // namespace

DriverProbe probeCudaDriver(const std::string &library) {
  DriverProbe probe;
  Driver driver;
  std::string why;
  driver.library = Library::open(library, why);
  if (!driver.library) {
    probe.reason = "found no NVIDIA driver (" + library + ": " + why + ")";
    return probe;
  }
  probe.library = driver.library.path();
  if (!driver.findAll()) {
    probe.reason = probe.library + " is no NVIDIA driver of CUDA 11 or later: functions are missing";
    return probe;
  }
  driver.driverGetVersion(&probe.driverVersion); // works before cuInit; 0 if not
  if (Result result = driver.init(0)) {
    probe.reason = driver.explain("cuInit", result);
    return probe;
  }
  int count = 0;
  if (Result result = driver.deviceGetCount(&count)) {
    probe.reason = driver.explain("cuDeviceGetCount", result);
    return probe;
  }
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CudaDevice device;
    Result result = 0;
    if (const char *call = driver.describe(ordinal, device, result)) {
      probe.reason = llvm::formatv("device {0}: {1}", ordinal, driver.explain(call, result)).str();
      return probe;
    }
    probe.devices.push_back(std::move(device));
  }
  if (probe.devices.empty()) probe.reason = driver.explain("cuDeviceGetCount", kNoDevice);
  return probe;
}

} // namespace fusor::runtime
