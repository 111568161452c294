#include "frontend/api/device.h"
#include "frontend/api/errors.h"
#include "runtime/cuda/cuda_program.h"
#include "runtime/execute/run_error.h"

namespace fusor::frontend {

namespace {

ChosenDevice chosen(const runtime::CudaDevice &device, ir::ArchTier limit) {
  return {runtime::cudaTarget(device, limit), device.ordinal, llvm::formatv("cuda:{0}", device.ordinal).str(), ""};
}

} // namespace

llvm::Expected<ChosenDevice> chooseDevice(llvm::StringRef text, ir::ArchTier limit) {
  const ChosenDevice cpu{{}, 0, "cpu", ""};
  if (text == "cpu") return cpu;
  if (text == "auto") {
    // No GPU is the common case here and no reason for a word.
    runtime::DriverProbe driver = runtime::probeCudaDriver();
    return driver.usable() ? chosen(driver.devices.front(), limit) : cpu;
  }
  llvm::StringRef rest = text;
  unsigned ordinal = 0;
  if (!rest.consume_front("cuda") || (!rest.empty() && (!rest.consume_front(":") || rest.getAsInteger(10, ordinal))))
    return failure(ErrorKind::usage, "--device must be auto, cpu, cuda or cuda:N, is '{0}'", text);
  runtime::DriverProbe driver = runtime::probeCudaDriver();
  if (!driver.usable())
    return llvm::make_error<runtime::DeviceError>(
        llvm::formatv("device '{0}' is not here: {1} (searched: {2}; `fusor doctor` shows more)", text, driver.reason,
                      driver.library.empty() ? "libcuda.so.1 in the loader's folders" : driver.library)
            .str());
  if (ordinal >= driver.devices.size())
    return llvm::make_error<runtime::DeviceError>(
        llvm::formatv("device '{0}' is not here: there are {1}, numbered from 0", text, driver.devices.size()).str());
  return chosen(driver.devices[ordinal], limit);
}

} // namespace fusor::frontend
