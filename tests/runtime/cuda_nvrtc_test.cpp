#include "runtime/cuda/nvrtc.h"
#include "tests/runtime/temporary_folder.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <thread>

using namespace fusor::runtime;

namespace {

constexpr const char *kScale = "extern \"C\" __global__ void scale(float *x, float by, int n) {\n"
                               "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                               "  if (i < n) x[i] *= by;\n"
                               "}\n";

NvrtcOptions testOptions() {
  NvrtcOptions options = NvrtcOptions::fromEnvironment();
  options.wheelRoots.push_back(std::string(FUSOR_SOURCE_DIR) + "/.deps");
  return options;
}

#define LOAD_OR_SKIP(nvrtc, options)                                                                                   \
  llvm::Expected<Nvrtc> nvrtc = loadNvrtc(options);                                                                    \
  if (!nvrtc) GTEST_SKIP() << llvm::toString(nvrtc.takeError())

TEST(CudaNvrtc, CompilesForAllArchitectures) {
  LOAD_OR_SKIP(nvrtc, testOptions());
  EXPECT_GE(nvrtc->major(), 11);
  EXPECT_EQ(nvrtc->version(), std::to_string(nvrtc->major()) + "." + std::to_string(nvrtc->minor()));
  EXPECT_TRUE(nvrtc->supports(80));
  EXPECT_FALSE(nvrtc->path().empty());
  struct {
    int number;
    const char *arch;
  } archs[] = {{75, "sm_75"},  {80, "sm_80"},   {86, "sm_86"},  {89, "sm_89"},
               {90, "sm_90a"}, {100, "sm_100"}, {120, "sm_120"}};
  for (auto [number, arch] : archs) {
    if (!nvrtc->supports(number)) continue; // an older NVRTC
    auto kernel = nvrtc->compile({.source = kScale, .name = "scale", .arch = arch});
    ASSERT_TRUE(bool(kernel)) << llvm::toString(kernel.takeError());
    EXPECT_FALSE(kernel->isPtx);
    EXPECT_EQ(kernel->image.substr(0, 4), "\x7f"
                                          "ELF")
        << arch;
    EXPECT_NE(kernel->image.find("scale"), std::string::npos);
  }
}

TEST(CudaNvrtc, MakesPtx) {
  LOAD_OR_SKIP(nvrtc, testOptions());
  auto kernel = nvrtc->compile({.source = kScale, .name = "scale", .arch = "compute_75", .options = {"--std=c++17"}});
  ASSERT_TRUE(bool(kernel)) << llvm::toString(kernel.takeError());
  EXPECT_TRUE(kernel->isPtx);
  EXPECT_NE(kernel->image.find(".target sm_75"), std::string::npos);
  EXPECT_NE(kernel->image.find(".visible .entry scale("), std::string::npos);
}

// What a dump compiles with: the same code, and where each instruction comes from.
TEST(CudaNvrtc, LineNumbersAreKeptWhereAskedFor) {
  LOAD_OR_SKIP(nvrtc, testOptions());
  auto image = [&](const char *arch, std::vector<std::string> options) {
    auto kernel = nvrtc->compile({.source = kScale, .name = "scale", .arch = arch, .options = options});
    if (kernel) return kernel->image;
    ADD_FAILURE() << llvm::toString(kernel.takeError());
    return std::string();
  };
  EXPECT_NE(image("sm_80", {"--std=c++17", "-lineinfo"}).find("debug_line"), std::string::npos);
  EXPECT_EQ(image("sm_80", {"--std=c++17"}).find("debug_line"), std::string::npos);
  std::string ptx = image("compute_80", {"--std=c++17", "-lineinfo"});
  EXPECT_NE(ptx.find(".loc"), std::string::npos);
  EXPECT_NE(ptx.find("scale.cu"), std::string::npos);
  if (nvrtc->supports(90)) {
    EXPECT_NE(image("compute_90a", {"-lineinfo"}).find(".target sm_90a"), std::string::npos);
  }
}

TEST(CudaNvrtc, TheErrorNamesKernelAndLine) {
  LOAD_OR_SKIP(nvrtc, testOptions());
  auto kernel = nvrtc->compile({.source = "__global__ void f(float *x) {\n  x[0] = nonsense;\n}\n",
                                .name = "row_softmax__f32",
                                .arch = "sm_80"});
  ASSERT_FALSE(bool(kernel));
  bool seen = false;
  llvm::handleAllErrors(kernel.takeError(), [&](const KernelCompileError &error) {
    seen = true;
    EXPECT_EQ(error.kernel(), "row_softmax__f32");
    EXPECT_EQ(error.arch(), "sm_80");
    EXPECT_EQ(error.reason(), "NVRTC_ERROR_COMPILATION");
    EXPECT_TRUE(error.compilerLog().contains("row_softmax__f32.cu(2)")) << error.compilerLog().str();
    EXPECT_TRUE(error.compilerLog().contains("nonsense"));
    EXPECT_TRUE(llvm::StringRef(error.message())
                    .startswith("kernel 'row_softmax__f32' does not compile for sm_80: NVRTC_ERROR_COMPILATION\n"));
  });
  EXPECT_TRUE(seen);
}

TEST(CudaNvrtc, WarningsAreKept) {
  LOAD_OR_SKIP(nvrtc, testOptions());
  auto kernel =
      nvrtc->compile({.source = "__global__ void f(float *x) { int unused; x[0] = 1; }", .name = "f", .arch = "sm_80"});
  ASSERT_TRUE(bool(kernel)) << llvm::toString(kernel.takeError());
  EXPECT_NE(kernel->log.find("unused"), std::string::npos) << kernel->log;
}

TEST(CudaNvrtc, UnknownArchitecturesAndOptions) {
  LOAD_OR_SKIP(nvrtc, testOptions());
  auto message = [&](llvm::StringRef arch, std::vector<std::string> options = {}) {
    auto kernel = nvrtc->compile({.source = kScale, .name = "scale", .arch = arch, .options = options});
    return kernel ? std::string("compiled") : llvm::toString(kernel.takeError());
  };
  EXPECT_EQ(message("gfx90a"),
            "kernel 'scale' does not compile for gfx90a: expected an architecture such as sm_90a or compute_75");
  EXPECT_NE(message("sm_20").find("for older devices install nvidia-cuda-nvrtc-cu12 and set FUSOR_NVRTC to it"),
            std::string::npos);
  EXPECT_NE(message("sm_999").find("a newer NVRTC is needed"), std::string::npos);
  EXPECT_NE(message("sm_80", {"--no-such-option"}).find("NVRTC_ERROR_INVALID_OPTION"), std::string::npos)
      << message("sm_80", {"--no-such-option"});
}

TEST(CudaNvrtc, CompilesOnSeveralThreads) {
  LOAD_OR_SKIP(nvrtc, testOptions());
  std::vector<std::thread> threads;
  std::vector<std::string> images(4);
  for (size_t i = 0; i < images.size(); ++i)
    threads.emplace_back([&, i] {
      auto kernel = nvrtc->compile({.source = kScale, .name = "scale", .arch = "sm_80"});
      if (kernel)
        images[i] = kernel->image;
      else
        llvm::consumeError(kernel.takeError());
    });
  for (std::thread &thread : threads) thread.join();
  EXPECT_FALSE(images[0].empty());
  for (const std::string &image : images) EXPECT_EQ(image, images[0]) << "the same source makes the same bytes";
}

TEST(CudaNvrtc, AnOldDeviceGetsACompilerThatStillHasIt) {
  NvrtcOptions options = testOptions();
  options.requiredArch = 60;
  LOAD_OR_SKIP(nvrtc, options);
  EXPECT_LT(nvrtc->major(), 13) << "CUDA 13 dropped sm_60";
  auto kernel = nvrtc->compile({.source = kScale, .name = "scale", .arch = "sm_60"});
  EXPECT_TRUE(bool(kernel)) << llvm::toString(kernel.takeError());
}

TEST(CudaNvrtc, TheSearchIsRecorded) {
  TemporaryFolder folder;
  folder.write("libnvrtc.so.13", "not a library");
  SearchLog log;
  auto none = loadNvrtc({.path = folder.path("libnvrtc.so.13")}, &log);
  ASSERT_FALSE(bool(none));
  std::string message = llvm::toString(none.takeError());
  EXPECT_NE(message.find("set FUSOR_NVRTC to libnvrtc.so; tried:\n  " + folder.path("libnvrtc.so.13") + ": "),
            std::string::npos)
      << message;
  ASSERT_EQ(log.size(), 1u);
  EXPECT_EQ(log[0].place, folder.path("libnvrtc.so.13"));

  auto wrong = loadNvrtc({.path = "libm.so.6"}, &log);
  ASSERT_FALSE(bool(wrong));
  llvm::consumeError(wrong.takeError());
  EXPECT_EQ(log[0].outcome, "is no NVRTC of CUDA 11.2 or later: functions are missing");

  auto absent = loadNvrtc({.path = folder.path("absent.so")}, &log);
  ASSERT_FALSE(bool(absent));
  llvm::consumeError(absent.takeError());
  EXPECT_EQ(log[0].outcome, "cannot open shared object file: No such file or directory");
}

TEST(CudaNvrtc, TooNewForTheDriverIsPassedOver) {
  LOAD_OR_SKIP(nvrtc, testOptions());
  SearchLog log;
  NvrtcOptions options;
  options.path = nvrtc->path();
  options.newestMajor = nvrtc->major() - 1;
  auto older = loadNvrtc(options, &log);
  ASSERT_FALSE(bool(older));
  llvm::consumeError(older.takeError());
  EXPECT_NE(log[0].outcome.find("is too new for a driver of CUDA"), std::string::npos) << log[0].outcome;
  EXPECT_EQ(nvrtc->search().back().outcome, "loaded, NVRTC " + nvrtc->version());
}

TEST(CudaLibrarySearch, FindsWheelsAndSkipsWhatIsAbsent) {
  TemporaryFolder folder;
  ASSERT_FALSE(llvm::sys::fs::create_directories(folder.path("nvrtc-12/nvidia/cuda_nvrtc/lib")));
  ASSERT_FALSE(llvm::sys::fs::create_directories(folder.path("nvidia/cu13/lib")));
  folder.write("nvrtc-12/nvidia/cuda_nvrtc/lib/libfusorfake.so.12", "");
  folder.write("nvidia/cu13/lib/libfusorfake.so.13", "");
  LibrarySearch search;
  search.fileNames = {"libfusorfake.so.13", "libfusorfake.so.12"};
  search.wheelRoots = {folder.path()};
  std::vector<std::string> expected = {"libfusorfake.so.13", "libfusorfake.so.12",
                                       folder.path("nvidia/cu13/lib/libfusorfake.so.13"),
                                       folder.path("nvrtc-12/nvidia/cuda_nvrtc/lib/libfusorfake.so.12")};
  for (std::string &place : expected) { // the root ends in "/": compare without doubled slashes
    size_t doubled = place.find("//");
    if (doubled != std::string::npos) place.erase(doubled, 1);
  }
  EXPECT_EQ(libraryPlaces(search), expected);

  search.explicitPath = folder.path("nvidia/cu13/lib");
  EXPECT_EQ(libraryPlaces(search), std::vector<std::string>{folder.path("nvidia/cu13/lib/libfusorfake.so.13")});
}

} // namespace
