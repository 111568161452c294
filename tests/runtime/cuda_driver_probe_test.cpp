#include "runtime/cuda/driver_probe.h"
#include "tests/runtime/temporary_folder.h"

#include <cstdlib>
#include <gtest/gtest.h>

using namespace fusor::runtime;

namespace {

TEST(CudaDriverProbe, ListsDevices) {
  DriverProbe probe = probeCudaDriver(FUSOR_FAKE_DRIVER);
  EXPECT_TRUE(probe.usable()) << probe.reason;
  EXPECT_EQ(probe.driverVersion, 12080);
  EXPECT_EQ(probe.driverMajor(), 12);
  EXPECT_EQ(probe.library, FUSOR_FAKE_DRIVER);
  ASSERT_EQ(probe.devices.size(), 2u);
  EXPECT_EQ(probe.devices[0].name, "Fake GPU 0");
  EXPECT_EQ(probe.devices[0].arch(), 90);
  EXPECT_EQ(probe.devices[1].arch(), 75);
  EXPECT_EQ(probe.devices[1].ordinal, 1);
  EXPECT_EQ(probe.devices[1].memoryBytes, int64_t(41) << 30);
  EXPECT_EQ(probe.devices[0].multiprocessors, 16);
  EXPECT_EQ(probe.devices[0].l2Bytes, 38);
  EXPECT_EQ(probe.devices[0].sharedBytesPerBlock, 97);
}

TEST(CudaDriverProbe, SaysWhyThereIsNoDevice) {
  ::setenv("FUSOR_FAKE_CUINIT", "100", 1);
  DriverProbe probe = probeCudaDriver(FUSOR_FAKE_DRIVER);
  ::setenv("FUSOR_FAKE_CUINIT", "999", 1);
  DriverProbe unknown = probeCudaDriver(FUSOR_FAKE_DRIVER);
  ::unsetenv("FUSOR_FAKE_CUINIT");
  EXPECT_FALSE(probe.usable());
  EXPECT_TRUE(probe.devices.empty());
  EXPECT_EQ(probe.reason, "cuInit failed: no CUDA-capable device is detected (CUDA_ERROR_NO_DEVICE); is "
                          "CUDA_VISIBLE_DEVICES empty, or the device not passed into this container?");
  EXPECT_EQ(unknown.reason, "cuInit failed: unknown error (code 999)");
}

TEST(CudaDriverProbe, NoDriverAtAll) {
  DriverProbe probe = probeCudaDriver("libfusor-no-such-driver.so.1");
  EXPECT_FALSE(probe.usable());
  EXPECT_EQ(probe.reason, "found no NVIDIA driver (libfusor-no-such-driver.so.1: cannot open shared object file: No "
                          "such file or directory)");
  TemporaryFolder folder;
  folder.write("libcuda.so.1", "not a library");
  probe = probeCudaDriver(folder.path("libcuda.so.1"));
  EXPECT_NE(probe.reason.find("found no NVIDIA driver ("), std::string::npos) << probe.reason;
  probe = probeCudaDriver("libm.so.6");
  EXPECT_NE(probe.reason.find("is no NVIDIA driver of CUDA 11 or later"), std::string::npos) << probe.reason;
}

TEST(CudaDriverProbe, ThisMachine) {
  DriverProbe probe = probeCudaDriver();
  EXPECT_EQ(probe.usable(), !probe.devices.empty()) << probe.reason;
  if (!probe.usable()) GTEST_SKIP() << "no device here: " << probe.reason;
  for (const CudaDevice &device : probe.devices) {
    EXPECT_FALSE(device.name.empty());
    EXPECT_GE(device.arch(), 50);
    EXPECT_GT(device.memoryBytes, int64_t(1) << 30);
    EXPECT_GE(device.sharedBytesPerBlock, 48 * 1024);
    EXPECT_GT(device.multiprocessors, 0);
    EXPECT_GT(device.l2Bytes, 0);
  }
  EXPECT_GE(probe.driverMajor(), 11);
}

} // namespace
