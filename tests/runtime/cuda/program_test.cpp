// CudaProgram on the fake GPU: a training step whose kernels run in the emulator, against the CPU's program.
#include "frontend/text/parser.h"
#include "ir/reference/initial_values.h"
#include "passes/pipeline.h"
#include "runtime/cuda/cuda_program.h"
#include "runtime/execute/run_error.h"
#include "tests/runtime/temporary_folder.h"
#include "tests/support/fake_gpu/fake_gpu.h"

#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>

using namespace fusor;
using namespace fusor::runtime;
using fusor::tests::FakeGpu;

namespace {

constexpr char kModel[] = R"(
dim B in 1..64
param @w1 : f32[8, 6] {init = normal(0.5)}
param @b1 : f32[8] {init = zeros}
param @w2 : f32[5, 8] {init = normal(0.5)}
func @forward(%x: f32[B, 6], %t: i32[B]) -> f32[] {
  %h = linear %x, @w1, bias = @b1 : f32[B, 8]
  %g = gelu %h : f32[B, 8]
  %y = linear %g, @w2 : f32[B, 5]
  %loss, %lse, %n = cross_entropy %y, %t : f32[], f32[B, 1], f32[]
  return %loss
}
)";

std::unique_ptr<ir::Module> compiled(llvm::StringRef text, passes::PipelineKind kind,
                                     ir::DType precision = ir::DType::f32) {
  auto module = frontend::parseModule(text, "test.fir");
  if (!module) {
    ADD_FAILURE() << llvm::toString(module.takeError());
    return nullptr;
  }
  passes::PassOptions options;
  options.optimizer.lr = 0.05;
  options.precision = precision;
  options.wideHeadBelow = 0;
  passes::PassContext context(options);
  if (auto error = passes::runPipeline(**module, kind, context)) ADD_FAILURE() << llvm::toString(std::move(error));
  return std::move(*module);
}

// Text stands for its own image.
CudaPlatform platformOf(const FakeGpu &gpu, std::shared_ptr<Cache> cache = nullptr) {
  CudaPlatform platform;
  platform.context = llvm::cantFail(CudaContext::around(gpu.functions(), gpu.device()));
  platform.compile = [](const KernelSource &kernel) -> llvm::Expected<CompiledKernel> {
    return CompiledKernel{true, kernel.source.str(), ""};
  };
  platform.compilerVersion = "emulator";
  platform.arch = "compute_75";
  platform.cache = std::move(cache);
  return platform;
}

llvm::Expected<std::unique_ptr<Program>> onFakeGpu(const FakeGpu &gpu, std::unique_ptr<ir::Module> module,
                                                   CompileOptions options = {},
                                                   std::shared_ptr<Cache> cache = nullptr) {
  return compileForCuda(std::move(module), cudaTarget(gpu.device()), std::move(options),
                        platformOf(gpu, std::move(cache)));
}

struct Batch {
  explicit Batch(int64_t rows) : rows(rows) {
    for (int64_t i = 0; i < rows * 6; ++i) x.push_back(std::sin(0.7f * i));
    for (int64_t i = 0; i < rows; ++i) t.push_back(i % 5);
  }
  int64_t rows;
  std::vector<float> x;
  std::vector<int32_t> t;
  std::vector<TensorView> inputs() {
    return {{ir::DType::f32, {rows, 6}, x.data()}, {ir::DType::i32, {rows}, t.data()}};
  }
};

float step(Program &program, int64_t rows, llvm::StringRef function = "train_step") {
  Batch batch(rows);
  float loss = -1;
  TensorView out{ir::DType::f32, {}, &loss};
  if (auto error = program.run(function, batch.inputs(), out)) ADD_FAILURE() << llvm::toString(std::move(error));
  return loss;
}

std::vector<float> weights(Program &program, llvm::StringRef name) {
  std::vector<float> values(llvm::cantFail(program.persistentBytes(name)) / 4);
  llvm::cantFail(program.readPersistent(name, {reinterpret_cast<char *>(values.data()), values.size() * 4}));
  return values;
}

#define PROGRAM(name, expected)                                                                                        \
  auto name##Or = expected;                                                                                            \
  ASSERT_TRUE(bool(name##Or)) << llvm::toString(name##Or.takeError());                                                 \
  Program &name = **name##Or;                                                                                          \
  if (auto error = name.initialize(3)) FAIL() << llvm::toString(std::move(error))

TEST(CudaProgram, TrainsLikeTheCpu) {
  FakeGpu gpu;
  {
    CompileOptions eager;
    eager.graphs = false;
    PROGRAM(cpu, compile(compiled(kModel, passes::PipelineKind::train), ir::Target{}, {}));
    PROGRAM(graphed, onFakeGpu(gpu, compiled(kModel, passes::PipelineKind::train)));
    PROGRAM(launched, onFakeGpu(gpu, compiled(kModel, passes::PipelineKind::train), eager));
    EXPECT_TRUE(graphed.fallbacks().empty()) << graphed.fallbacks()[0].reason;
    gpu.calls.clear();
    // Shapes A, B, A, C, B through one program.
    for (int64_t rows : {4, 7, 4, 33, 7, 4}) {
      float loss = step(graphed, rows);
      EXPECT_NEAR(loss, step(cpu, rows), 1e-4);
      EXPECT_EQ(loss, step(launched, rows));
    }
    EXPECT_EQ(graphed.plansBuilt(), 3u);
    EXPECT_EQ(gpu.count("capture"), 3); // 4, 7, and 4 again: 33 rows needed a larger arena, which moved
    EXPECT_EQ(gpu.count("graph"), 3);
    EXPECT_EQ(graphed.launchesPerRun(), 1u);
    EXPECT_EQ(launched.launchesPerRun(), launched.kernelsPerRun());
    for (const char *name : {"w1", "b1", "w2"}) {
      auto got = weights(graphed, name), expected = weights(cpu, name);
      EXPECT_EQ(got, weights(launched, name));
      for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 2e-4) << name << " " << i;
    }
  }
  EXPECT_EQ(gpu.openHandles, 0);
  EXPECT_EQ(gpu.allocatedBytes, 0);
}

// The library's column-major world, its timing, and the loops behind a product in memory.
TEST(CudaProgram, GemmsAsLibraryCalls) {
  FakeGpu gpu;
  TemporaryFolder folder;
  std::shared_ptr<Cache> cache = llvm::cantFail(Cache::open(folder.path("cache")));
  ::setenv("FUSOR_CUBLASLT", FUSOR_FAKE_CUBLASLT, 1);
  auto library = [&](ir::DType precision, bool check) {
    CudaPlatform platform = platformOf(gpu, cache);
    platform.cublasLt = llvm::cantFail(CublasLt::load(platform.context));
    CompileOptions options;
    options.check = check, options.strict = true;
    options.graphs = false; // the fake library works at once, and is not recorded
    auto module = compiled(kModel, passes::PipelineKind::train, precision);
    return compileForCuda(std::move(module), cudaTarget(gpu.device()), options, std::move(platform));
  };
  PROGRAM(cpu, compile(compiled(kModel, passes::PipelineKind::train), ir::Target{}, {}));
  PROGRAM(gpuProgram, library(ir::DType::f32, false));
  for (int64_t rows : {5, 5, 11, 5}) EXPECT_NEAR(step(gpuProgram, rows), step(cpu, rows), 1e-4);
  for (ir::DType precision : {ir::DType::f32, ir::DType::bf16}) {
    PROGRAM(checked, library(precision, true));
    step(checked, 6);
  }
  int plans = 0;
  for (const Cache::Entry &entry : cache->entries()) plans += entry.kind == "gemm-plan";
  EXPECT_GT(plans, 0);
  ::unsetenv("FUSOR_CUBLASLT");
}

TEST(CudaProgram, ChecksEachKernelAgainstItsBody) {
  FakeGpu gpu;
  CompileOptions options;
  options.check = true;
  PROGRAM(program, onFakeGpu(gpu, compiled(kModel, passes::PipelineKind::train), options));
  step(program, 9);
}

TEST(CudaProgram, KernelsComeFromTheCache) {
  FakeGpu gpu;
  TemporaryFolder folder;
  std::shared_ptr<Cache> cache = llvm::cantFail(Cache::open(folder.path("cache")));
  PROGRAM(first, onFakeGpu(gpu, compiled(kModel, passes::PipelineKind::infer), {}, cache));
  PROGRAM(second, onFakeGpu(gpu, compiled(kModel, passes::PipelineKind::infer), {}, cache));
  EXPECT_GT(first.compileStats().compiled, 0u);
  EXPECT_EQ(second.compileStats().compiled, 0u);
  EXPECT_EQ(second.compileStats().fromCache, first.compileStats().compiled);
  EXPECT_EQ(step(first, 3, "forward"), step(second, 3, "forward"));
}

// A training loop that reads each loss one step late, with a learning rate that changes each step.
TEST(CudaProgram, StartsStepsAheadOfTheirResults) {
  FakeGpu gpu;
  {
    PROGRAM(waiting, onFakeGpu(gpu, compiled(kModel, passes::PipelineKind::train)));
    PROGRAM(ahead, onFakeGpu(gpu, compiled(kModel, passes::PipelineKind::train)));
    PROGRAM(cpu, compile(compiled(kModel, passes::PipelineKind::train), ir::Target{}, {}));
    EXPECT_TRUE(ahead.isDeferred());
    EXPECT_FALSE(cpu.isDeferred());
    auto setRate = [](Program &program, int step) {
      float lr = 0.05f / static_cast<float>(step + 1);
      llvm::cantFail(program.writePersistent("optimizer.lr", {reinterpret_cast<char *>(&lr), sizeof lr}));
    };
    std::vector<float> expected, expectedCpu;
    int sizes[] = {4, 7, 7, 4, 4, 7};
    for (int i = 0; i < 6; ++i) {
      setRate(waiting, i), setRate(cpu, i);
      expected.push_back(step(waiting, sizes[i]));
      expectedCpu.push_back(step(cpu, sizes[i]));
    }
    for (auto [program, losses] : {std::pair{&ahead, &expected}, {&cpu, &expectedCpu}}) {
      if (auto error = program->initialize(3)) FAIL() << llvm::toString(std::move(error));
      std::vector<unsigned> started;
      int first = gpu.calls.size();
      std::vector<float> got;
      auto read = [&, program = program](unsigned number) {
        float loss = -1;
        TensorView out{ir::DType::f32, {}, &loss};
        if (auto error = program->finish(number, out)) FAIL() << llvm::toString(std::move(error));
        got.push_back(loss);
      };
      for (int i = 0; i < 6; ++i) {
        setRate(*program, i);
        Batch batch(sizes[i]);
        started.push_back(llvm::cantFail(program->start("train_step", batch.inputs())));
        std::fill(batch.x.begin(), batch.x.end(), 1e30f); // the inputs' memory is the caller's again
        if (i > 0) read(started[i - 1]);
      }
      EXPECT_LE(first, static_cast<int>(gpu.calls.size()));
      read(started.back());
      EXPECT_EQ(got, *losses);
      auto twice = program->finish(started.back(), {});
      EXPECT_NE(llvm::toString(std::move(twice)).find("was not started, or has been finished"), std::string::npos);
    }
    for (const char *name : {"w1", "b1", "w2"}) EXPECT_EQ(weights(ahead, name), weights(waiting, name));
  }
  EXPECT_EQ(gpu.openHandles, 0);
}

// Pieces and threads do not show; zeros cross no bus.
TEST(CudaProgram, InitialValuesAreTheCpus) {
  FakeGpu gpu;
  constexpr char kWide[] = R"(
param @w : f32[300, 200] {init = normal(0.02)}
param @h : bf16[70, 300] {init = normal(0.02)}
param @ones : f32[5000] {init = constant(1.0)}
state @zeros : f32[30000]
func @forward(%x: f32[2, 200]) -> f32[2, 300] {
  %y = linear %x, @w : f32[2, 300]
  return %y
}
)";
  CompileOptions oneThread;
  oneThread.threads = 1;
  PROGRAM(cpu, compile(compiled(kWide, passes::PipelineKind::infer), ir::Target{}, oneThread));
  gpu.calls.clear();
  PROGRAM(program, onFakeGpu(gpu, compiled(kWide, passes::PipelineKind::infer)));
  EXPECT_EQ(gpu.count("upload 120000"), 0);
  for (const auto &persistent : cpu.module().persistents()) {
    std::vector<char> a(llvm::cantFail(cpu.persistentBytes(persistent->name))), b(a.size());
    llvm::cantFail(cpu.readPersistent(persistent->name, a));
    llvm::cantFail(program.readPersistent(persistent->name, b));
    EXPECT_EQ(a, b) << persistent->name;
    int64_t elements = a.size() / ir::byteSize(persistent->type.dtype);
    auto values = ir::initialValues(*persistent, 3, elements);
    for (int64_t i = 0; i < elements; i += 97)
      EXPECT_EQ(ir::loadElement(persistent->type.dtype, b.data(), i), values[i]) << persistent->name << " " << i;
  }
}

TEST(CudaProgram, ProfilesEachLaunch) {
  FakeGpu gpu;
  PROGRAM(program, onFakeGpu(gpu, compiled(kModel, passes::PipelineKind::train)));
  step(program, 4), step(program, 4);
  EXPECT_TRUE(program.stepTimes().empty());
  program.setProfiling(true);
  EXPECT_FALSE(program.isDeferred());
  float timed = step(program, 4);
  EXPECT_EQ(program.launchesPerRun(), 1u); // in the graph, between events
  EXPECT_EQ(program.stepTimes().size(), program.kernelsPerRun());
  double bytes = 0, flops = 0;
  for (const StepTime &time : program.stepTimes()) {
    EXPECT_EQ(time.ms, 0.5) << time.name; // the fake's
    bytes += time.bytes, flops += time.flops;
  }
  EXPECT_GT(bytes, 0);
  // 6 -> 8 forward and weight gradient, 8 -> 5 forward and both gradients, four rows.
  EXPECT_EQ(flops, 2.0 * 4 * (2 * 6 * 8 + 3 * 8 * 5));
  program.setProfiling(false);
  EXPECT_LT(step(program, 4), timed);
  EXPECT_EQ(llvm::cantFail(program.timeRuns("train_step", Batch(4).inputs(), 5)), 0.5 / 5);
}

constexpr char kNoKernel[] = R"(
param @w : f32[4, 6] {init = normal(1.0)}
func @pick(%x: f32[3, 6]) -> i32[3] {
  %y = linear %x, @w : f32[3, 4]
  %i = arg_reduce %y {axis = 1} : i32[3]
  return %i
}
)";

TEST(CudaProgram, WhatHasNoKernelRunsOnTheHost) {
  FakeGpu gpu;
  PROGRAM(cpu, compile(compiled(kNoKernel, passes::PipelineKind::infer), ir::Target{}, {}));
  PROGRAM(program, onFakeGpu(gpu, compiled(kNoKernel, passes::PipelineKind::infer)));
  if (program.fallbacks().empty()) GTEST_SKIP() << "arg_reduce has a kernel now";
  EXPECT_NE(program.fallbacks()[0].where.find("@pick: "), std::string::npos) << program.fallbacks()[0].where;
  float x[18];
  for (int i = 0; i < 18; ++i) x[i] = std::cos(i * 1.3f);
  for (int i = 0; i < 2; ++i) {
    int32_t got[3] = {9, 9, 9}, expected[3] = {8, 8, 8};
    TensorView in{ir::DType::f32, {3, 6}, x}, out{ir::DType::i32, {3}, got}, outCpu{ir::DType::i32, {3}, expected};
    auto error = program.run("pick", in, out);
    ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
    ASSERT_FALSE(bool(cpu.run("pick", in, outCpu)));
    for (int j = 0; j < 3; ++j) EXPECT_EQ(got[j], expected[j]);
  }
  EXPECT_EQ(gpu.count("capture"), 0);
  CompileOptions strict;
  strict.strict = true;
  auto refused = onFakeGpu(gpu, compiled(kNoKernel, passes::PipelineKind::infer), strict);
  ASSERT_FALSE(bool(refused));
  EXPECT_NE(llvm::toString(refused.takeError()).find("fell back"), std::string::npos);
}

TEST(CudaProgram, FailuresAreTold) {
  FakeGpu gpu;
  PROGRAM(program, onFakeGpu(gpu, compiled(kModel, passes::PipelineKind::infer)));
  Batch batch(5);
  float loss;
  TensorView out{ir::DType::f32, {}, &loss};
  gpu.failing = "cuLaunchKernel";
  auto error = program.run("forward", batch.inputs(), out);
  EXPECT_TRUE(error.isA<DeviceError>());
  std::string text = llvm::toString(std::move(error));
  EXPECT_NE(text.find("cuLaunchKernel failed for kernel '"), std::string::npos) << text;
  gpu.failing = "";
  EXPECT_GT(step(program, 5, "forward"), 0); // nothing was left half done

  gpu.memoryBytes = 10;
  auto none = onFakeGpu(gpu, compiled(kModel, passes::PipelineKind::infer));
  ASSERT_FALSE(bool(none));
  error = none.takeError();
  EXPECT_TRUE(error.isA<OutOfMemoryError>());
  llvm::consumeError(std::move(error));
}

TEST(CudaProgram, ArchitecturesAndTiers) {
  EXPECT_EQ(llvm::cantFail(archToCompileFor("sm_90a", {75, 80, 90})), "sm_90a");
  EXPECT_EQ(llvm::cantFail(archToCompileFor("compute_75", {75, 80, 90})), "compute_75");
  EXPECT_EQ(llvm::cantFail(archToCompileFor("sm_120", {75, 80, 90})), "compute_90");
  auto old = archToCompileFor("sm_60", {75, 80, 90});
  ASSERT_FALSE(bool(old));
  EXPECT_NE(llvm::toString(old.takeError()).find("compiles for sm_75 and newer, the device is sm_60"),
            std::string::npos);
  CudaDevice hopper;
  hopper.major = 9;
  EXPECT_EQ(cudaTarget(hopper).arch, "sm_90a");
  EXPECT_EQ(cudaTarget(hopper).tier, ir::ArchTier::sm90a);
  EXPECT_EQ(cudaTarget(hopper, ir::ArchTier::simt).arch, "compute_75");
}

} // namespace
