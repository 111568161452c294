// What NVIDIA's driver says about this machine, asked through dlopen: for `fusor doctor`, and to choose a device.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace fusor::runtime {

struct CudaDevice {
  int ordinal = 0;
  std::string name;         ///< "NVIDIA H200"
  int major = 0, minor = 0; ///< compute capability: 9, 0
  int multiprocessors = 0;
  int64_t memoryBytes = 0; ///< all of the device's memory
  int64_t l2Bytes = 0;
  int64_t sharedBytesPerBlock = 0; ///< the most a kernel can opt in to

  int arch() const { return 10 * major + minor; } ///< 90
};

struct DriverProbe {
  std::string library;   ///< the driver's file; empty when there is none
  int driverVersion = 0; ///< newest CUDA version it supports, 13000 for 13.0; 0 when unknown
  std::vector<CudaDevice> devices;
  std::string reason; ///< why there is no usable device, and what to do; empty when there is one

  bool usable() const { return reason.empty(); }
  int driverMajor() const { return driverVersion / 1000; }
};

/// Opens the driver, initialises it and lists the devices (honouring CUDA_VISIBLE_DEVICES). Makes no context and holds
/// no device memory. Takes up to a second on a machine with GPUs. `library` is for tests.
DriverProbe probeCudaDriver(const std::string &library = "libcuda.so.1");

} // namespace fusor::runtime
