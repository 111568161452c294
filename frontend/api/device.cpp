#include "frontend/api/device.h"
#include "frontend/api/errors.h"
#include "runtime/cuda/driver_probe.h"
#include "runtime/execute/run_error.h"

namespace fusor::frontend {

llvm::Expected<ChosenDevice> chooseDevice(llvm::StringRef text) {
  if (text == "cpu") return ChosenDevice{{}, "cpu", ""};
  if (text == "auto") {
    // No GPU is the common case here and no reason for a word; a GPU that is passed over is.
    runtime::DriverProbe driver = runtime::probeCudaDriver();
    ChosenDevice device{{}, "cpu", ""};
    if (driver.usable())
      device.note = llvm::formatv("{0} is here, but the CUDA run time is not available yet: using the CPU",
                                  driver.devices.front().name);
    return device;
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
  return llvm::make_error<runtime::DeviceError>(
      llvm::formatv("device '{0}': {1} is here, but the CUDA run time is not available yet; use --device cpu", text,
                    driver.devices[ordinal].name)
          .str());
}

} // namespace fusor::frontend
