#include "runtime/cuda/driver.h"
#include "runtime/execute/run_error.h"
#include "tests/support/fake_gpu/fake_gpu.h"

#include <gtest/gtest.h>

using namespace fusor;
using namespace fusor::runtime;
using fusor::tests::FakeGpu;

namespace {

constexpr char kScale[] = "typedef long long i64;\n"
                          "extern \"C\" __global__ void scale(float *x, i64 n) {\n"
                          "  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;\n"
                          "  if (i < n) x[i] *= 2.0f;\n"
                          "}\n";

template <typename T> T take(llvm::Expected<T> value) {
  EXPECT_TRUE(bool(value)) << llvm::toString(value.takeError());
  if (!value) std::abort();
  return std::move(*value);
}
#define OK(call)                                                                                                       \
  if (llvm::Error error = call) FAIL() << llvm::toString(std::move(error))

TEST(CudaDriver, ADriverThatIsTooOldIsNamed) {
  auto context = CudaContext::open(0, FUSOR_FAKE_DRIVER);
  ASSERT_FALSE(bool(context));
  std::string text = llvm::toString(context.takeError());
  EXPECT_NE(text.find("has no cuDevicePrimaryCtxRetain: a driver of CUDA 11.4 or later is needed"), std::string::npos)
      << text;
}

TEST(CudaDriver, LaunchesEagerlyAndAsAGraph) {
  FakeGpu gpu;
  {
    auto context = take(CudaContext::around(gpu.functions(), gpu.device()));
    auto stream = take(CudaStream::create(context));
    auto memory = take(DeviceMemory::allocate(context, 12, "three numbers"));
    auto module = take(CudaModule::load(context, kScale, "scale"));
    CudaFunctionHandle scale = take(module.function("scale", 0));
    float values[3] = {1, 2, 3};
    OK(stream.upload(memory.address(), values, 12));
    OK(stream.launch(scale, {1, 32, 0}, {memory.address(), 3}, "scale"));
    OK(stream.beginCapture());
    OK(stream.launch(scale, {1, 32, 0}, {memory.address(), 2}, "scale"));
    CudaGraph graph = take(stream.endCapture());
    EXPECT_EQ(graph.nodes(), 1);
    OK(stream.launch(graph));
    OK(stream.launch(graph));
    OK(stream.download(values, memory.address(), 12));
    OK(stream.synchronize());
    EXPECT_EQ(values[0], 8);
    EXPECT_EQ(values[1], 16);
    EXPECT_EQ(values[2], 6);
  }
  EXPECT_EQ(gpu.openHandles, 0);
}

TEST(CudaDriver, ErrorsNameCallAndKernel) {
  FakeGpu gpu;
  auto context = take(CudaContext::around(gpu.functions(), gpu.device()));
  auto stream = take(CudaStream::create(context));
  gpu.failing = "cuLaunchKernel";
  auto error = stream.launch(nullptr, {4, 128, 0}, {}, "add__f32");
  EXPECT_TRUE(error.isA<DeviceError>());
  EXPECT_EQ(llvm::toString(std::move(error)),
            "cuLaunchKernel failed for kernel 'add__f32', 4 blocks of 128 threads: unspecified "
            "launch failure (CUDA_ERROR_LAUNCH_FAILED, code 719)");
  gpu.memoryBytes = 1000;
  auto memory = DeviceMemory::allocate(context, 2000, "the arena");
  ASSERT_FALSE(bool(memory));
  error = memory.takeError();
  EXPECT_TRUE(error.isA<OutOfMemoryError>());
  EXPECT_EQ(llvm::toString(std::move(error)), "Fake GPU has no 2000 bytes left for the arena: 1000 are free");
}

} // namespace
