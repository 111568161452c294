// CudaProgram on the fake GPU: a training step whose kernels run in the emulator, against the CPU's program.
#include "frontend/api/checkpoint.h"
#include "frontend/api/errors.h"
#include "frontend/api/fp8_weights.h"
#include "frontend/text/parser.h"
#include "ir/reference/initial_values.h"
#include "passes/pipeline.h"
#include "runtime/cuda/cuda_program.h"
#include "runtime/execute/run_error.h"
#include "tests/runtime/temporary_folder.h"
#include "tests/support/fake_gpu/fake_gpu.h"
#include "tests/support/replaced.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <cmath>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <gtest/gtest.h>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

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
                                     ir::DType precision = ir::DType::f32, bool fp8Weights = false) {
  auto module = frontend::parseModule(text, "test.fir");
  if (!module) {
    ADD_FAILURE() << llvm::toString(module.takeError());
    return nullptr;
  }
  passes::PassOptions options;
  options.optimizer.lr = 0.05;
  options.precision = precision;
  options.wideHeadBelow = 0;
  options.fp8Weights = fp8Weights;
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

constexpr char kFp8Model[] = R"(
dim B in 1..64
param @w1 : f32[WIDE, 32] {init = normal(0.3)}
param @b1 : f32[WIDE] {init = normal(0.3)}
param @w2 : f32[16, WIDE] {init = normal(0.3)}
func @forward(%x: f32[B, 32], %t: i32[B]) -> f32[] {
  %h = linear %x, @w1, bias = @b1 : f32[B, WIDE]
  %g = gelu %h : f32[B, WIDE]
  %y = linear %g, @w2 : f32[B, 16]
  %loss, %lse, %n = cross_entropy %y, %t : f32[], f32[B, 1], f32[]
  return %loss
}
)";

std::unique_ptr<ir::Module> fp8Compiled(const ir::Target &target, const char *wide = "48") {
  auto module = llvm::cantFail(frontend::parseModule(fusor::tests::replaced(kFp8Model, "WIDE", wide), "test.fir"));
  passes::PassOptions options;
  options.optimizer.lr = 0.05;
  options.precision = ir::DType::bf16, options.wideHeadBelow = 0;
  options.fp8.emplace().select = "."; // the last layer too, though its result goes to nothing but a loss
  options.target = target;
  passes::PassContext context(options);
  if (auto error = passes::runPipeline(*module, passes::PipelineKind::train, context))
    ADD_FAILURE() << llvm::toString(std::move(error));
  return module;
}

int countedInLibrary(const char *counter) {
  void *handle = ::dlopen(FUSOR_FAKE_CUBLASLT, RTLD_NOW);
  int value = *static_cast<int *>(::dlsym(handle, counter));
  ::dlclose(handle);
  return value;
}

// FP8 products as calls with two scales; sums whose length is no multiple of 16 as own kernels, which is said.
TEST(CudaProgram, Fp8GemmsAsLibraryCalls) {
  FakeGpu gpu;
  ::setenv("FUSOR_CUBLASLT", FUSOR_FAKE_CUBLASLT, 1);
  ir::Target target = cudaTarget(gpu.device());
  target.hasFp8 = true;
  auto library = [&](bool check, const char *wide = "48") {
    CudaPlatform platform = platformOf(gpu);
    platform.cublasLt = llvm::cantFail(CublasLt::load(platform.context));
    CompileOptions options;
    options.check = check, options.strict = true;
    options.graphs = false, options.timeGemms = false;
    return compileForCuda(fp8Compiled(target, wide), target, options, std::move(platform));
  };
  auto run = [](Program &program, int64_t rows) {
    std::vector<float> x(rows * 32);
    std::vector<int32_t> t(rows);
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.7f * i);
    for (int64_t i = 0; i < rows; ++i) t[i] = i % 16;
    float loss = -1;
    TensorView in[] = {{ir::DType::f32, {rows, 32}, x.data()}, {ir::DType::i32, {rows}, t.data()}};
    TensorView out{ir::DType::f32, {}, &loss};
    if (auto error = program.run("train_step", in, out)) ADD_FAILURE() << llvm::toString(std::move(error));
    return loss;
  };
  PROGRAM(cpu, compile(fp8Compiled(ir::Target{}), ir::Target{}, {}));
  PROGRAM(gpuProgram, library(false));
  EXPECT_TRUE(gpuProgram.fallbacks().empty());
  int before = countedInLibrary("fakeCublasLtFp8Products"), fast = countedInLibrary("fakeCublasLtFastProducts");
  EXPECT_NEAR(run(gpuProgram, 16), run(cpu, 16), 1e-3);
  // Forward twice, fast; both weight gradients and the inner input gradient, not.
  EXPECT_EQ(countedInLibrary("fakeCublasLtFp8Products") - before, 5);
  EXPECT_EQ(countedInLibrary("fakeCublasLtFastProducts") - fast, 2);
  EXPECT_EQ(gpuProgram.compileStats().ownGemms, 0u);
  EXPECT_NEAR(run(gpuProgram, 5), run(cpu, 5), 1e-3);
  EXPECT_EQ(countedInLibrary("fakeCublasLtFp8Products") - before, 5 + 3);
  EXPECT_EQ(gpuProgram.compileStats().ownGemms, 2u);
  std::string said = llvm::join(gpuProgram.compileStats().notes, "\n");
  EXPECT_NE(said.find("2 of 5 products run as fusor's own kernels"), std::string::npos) << said;
  EXPECT_NE(said.find("cuBLASLt's FP8 needs multiples of 16, it has 5 terms a sum"), std::string::npos) << said;
  for (int64_t rows : {16, 5, 32, 48}) EXPECT_NEAR(run(gpuProgram, rows), run(cpu, rows), 1e-3);
  for (const char *name : {"w1", "b1", "w2"}) {
    auto got = weights(gpuProgram, name), expected = weights(cpu, name);
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 2e-2) << name << " " << i;
  }
  PROGRAM(checked, library(true));
  run(checked, 16), run(checked, 7);
  // The amax of gelu is taken by the loop behind the product: no f32 activation is written for it.
  auto contains = [](const KernelInfo &kernel, const char *op) { return kernel.ops.find(op) != std::string::npos; };
  EXPECT_TRUE(llvm::any_of(checked.kernels(), [&](const KernelInfo &kernel) {
    return kernel.kind == "contraction" && contains(kernel, "gelu ") && contains(kernel, "amax");
  }));
  PROGRAM(narrow, library(true, "40"));               // 40 columns, 40 terms: own kernels
  EXPECT_EQ(narrow.compileStats().ownGemms, 2u + 4u); // of @forward, of @train_step
  run(narrow, 16);
  ::unsetenv("FUSOR_CUBLASLT");
}

// A second start measures nothing; a checkpoint's plans go before the cache's; damaged and foreign ones are left out.
TEST(CudaProgram, GemmPlansAreKept) {
  FakeGpu gpu;
  TemporaryFolder folder;
  std::shared_ptr<Cache> cache = llvm::cantFail(Cache::open(folder.path("cache")));
  ::setenv("FUSOR_CUBLASLT", FUSOR_FAKE_CUBLASLT, 1);
  auto program = [&](std::shared_ptr<Cache> kept, bool timing = true) {
    CudaPlatform platform = platformOf(gpu, std::move(kept));
    platform.cublasLt = llvm::cantFail(CublasLt::load(platform.context));
    CompileOptions options;
    options.timeGemms = timing, options.graphs = false;
    return compileForCuda(compiled(kModel, passes::PipelineKind::train), cudaTarget(gpu.device()), options,
                          std::move(platform));
  };
  auto said = [](const Program &p) { return llvm::join(p.compileStats().notes, "\n"); };
  PROGRAM(first, program(cache));
  step(first, 5);
  GemmPlans plans = first.gemmPlans();
  EXPECT_GT(first.compileStats().timedGemms, 0u);
  EXPECT_EQ(plans.text.size(), first.compileStats().timedGemms);
  PROGRAM(second, program(cache));
  step(second, 5);
  EXPECT_EQ(second.compileStats().timedGemms, 0u);
  EXPECT_EQ(second.gemmPlans().text, plans.text);

  // The last digit of the first word: algorithm 2 of the fake, whatever was the fastest.
  for (auto &[shape, text] : plans.text) text[0] = '0', text[1] = '2';
  PROGRAM(resumed, program(cache));
  resumed.adoptGemmPlans(plans);
  step(resumed, 5);
  EXPECT_EQ(resumed.gemmPlans().text, plans.text);
  EXPECT_EQ(resumed.compileStats().timedGemms, 0u);
  PROGRAM(untimed, program(nullptr, false)); // --deterministic resumes with the same ones too
  untimed.adoptGemmPlans(plans);
  step(untimed, 5);
  EXPECT_EQ(untimed.gemmPlans().text, plans.text);

  GemmPlans foreign = plans;
  foreign.environment = "another GPU";
  PROGRAM(elsewhere, program(nullptr));
  elsewhere.adoptGemmPlans(foreign);
  step(elsewhere, 5);
  EXPECT_NE(said(elsewhere).find("GEMM plans for another GPU cannot be used"), std::string::npos) << said(elsewhere);
  EXPECT_GT(elsewhere.compileStats().timedGemms, 0u);

  auto damaged = plans;
  auto one = damaged.text.begin();
  one->second = "zz", std::next(one)->second[1] = '9'; // no hexadecimal number; algorithm 9 is not there
  PROGRAM(repaired, program(nullptr));
  repaired.adoptGemmPlans(damaged);
  EXPECT_GT(step(repaired, 5), 0);
  EXPECT_EQ(repaired.compileStats().timedGemms, 2u);
  EXPECT_NE(said(repaired).find("is damaged or unknown to cuBLASLt"), std::string::npos) << said(repaired);
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

// A training loop that reads each loss one step late, with a learning rate that changes each step; its inputs are
// copied, or made where they are uploaded from.
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
    // Read a step late, and after all have started: more are unread than there is pinned memory for.
    for (auto [program, losses, late, stages] : {std::tuple{&ahead, &expected, 1, false},
                                                 {&ahead, &expected, 5, false},
                                                 {&ahead, &expected, 1, true},
                                                 {&ahead, &expected, 5, true},
                                                 {&cpu, &expectedCpu, 1, false},
                                                 {&cpu, &expectedCpu, 5, true}}) {
      int staged = 0;
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
        auto inputs = batch.inputs();
        if (stages) llvm::cantFail(program->stage("train_step", inputs));
        if (inputs[0].data != batch.x.data()) {
          ++staged;
          llvm::copy(batch.x, inputs[0].elementsOf<float>().begin());
          llvm::copy(batch.t, inputs[1].elementsOf<int32_t>().begin());
        }
        started.push_back(llvm::cantFail(program->start("train_step", inputs)));
        std::fill(batch.x.begin(), batch.x.end(), 1e30f); // the inputs' memory is the caller's again
        if (i >= late) read(started[i - late]);
      }
      EXPECT_LE(first, static_cast<int>(gpu.calls.size()));
      for (int i = 6 - late; i < 6; ++i) read(started[i]);
      EXPECT_EQ(got, *losses);
      EXPECT_EQ(staged, stages && program == &ahead ? 2 : 0); // the steps like the one before
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

  gpu.failing = "cuModuleLoadData", gpu.failingCode = 222; // unsupported PTX version
  auto older = onFakeGpu(gpu, compiled(kModel, passes::PipelineKind::infer));
  ASSERT_FALSE(bool(older));
  error = older.takeError();
  EXPECT_TRUE(error.isA<DeviceError>());
  text = llvm::toString(std::move(error));
  EXPECT_NE(text.find("is older than the NVRTC that made it: update the driver, or set FUSOR_NVRTC"), std::string::npos)
      << text;
  gpu.failing = "", gpu.failingCode = 719;

  gpu.memoryBytes = 10;
  auto none = onFakeGpu(gpu, compiled(kModel, passes::PipelineKind::infer));
  ASSERT_FALSE(bool(none));
  error = none.takeError();
  EXPECT_TRUE(error.isA<OutOfMemoryError>());
  llvm::consumeError(std::move(error));
}

std::string failedStep(Program &program, bool &isMemory, bool &isDevice) {
  Batch batch(5);
  float loss;
  TensorView out{ir::DType::f32, {}, &loss};
  auto error = program.run("train_step", batch.inputs(), out);
  isMemory = error.isA<OutOfMemoryError>(), isDevice = error.isA<DeviceError>();
  return llvm::toString(std::move(error));
}

TEST(CudaProgram, OutOfMemoryNamesThePlanAndWhatLowersIt) {
  FakeGpu gpu;
  bool isMemory, isDevice;
  {
    PROGRAM(program, onFakeGpu(gpu, compiled(kModel, passes::PipelineKind::train)));
    int refused = 0; // for the arena, for what is the bucket's own: each with the plan
    for (int64_t more = 0;; more += 256) {
      gpu.memoryBytes = gpu.allocatedBytes + more;
      std::string text = failedStep(program, isMemory, isDevice);
      if (text.empty()) break; // and it goes on when there is room
      ++refused;
      ASSERT_TRUE(isMemory) << text;
      for (const char *part : {"@train_step needs ", "a smaller batch, --accumulate N or --recompute full lower it"})
        EXPECT_NE(text.find(part), std::string::npos) << text;
    }
    EXPECT_GT(refused, 2);
    gpu.failing = "cuGraphInstantiate", gpu.failingCode = 2;
    std::string text = failedStep(program, isMemory, isDevice);
    EXPECT_TRUE(isMemory) << text;
    EXPECT_NE(text.find("cuGraphInstantiate failed"), std::string::npos) << text;
    gpu.failing = "", gpu.failingCode = 719;
  }
  EXPECT_EQ(gpu.openHandles, 0);
}

// Copies of weights that are gone are still among what a function once read.
TEST(CudaProgram, WeightsInFp8AreMadeWideRightBeforeTheirProduct) {
  FakeGpu gpu;
  {
    auto kind = passes::PipelineKind::infer;
    PROGRAM(cpu, compile(compiled(kModel, kind, ir::DType::bf16, true), ir::Target{}, {}));
    PROGRAM(device, onFakeGpu(gpu, compiled(kModel, kind, ir::DType::bf16, true)));
    llvm::cantFail(frontend::initializeFp8Weights(cpu, 5));
    llvm::cantFail(frontend::initializeFp8Weights(device, 5));
    EXPECT_GT(llvm::cantFail(frontend::fp8WeightBytes(device)).fp8, 0);
    EXPECT_EQ(device.module().persistent("w1")->type.dtype, ir::DType::f8e4m3);
    EXPECT_EQ(device.module().persistent("w2")->type.dtype, ir::DType::f32) << "a head";
    for (int i = 0; i < 3; ++i) EXPECT_NEAR(step(device, 5, "forward"), step(cpu, 5, "forward"), 1e-4);
    EXPECT_TRUE(device.fallbacks().empty());
  }
  EXPECT_EQ(gpu.openHandles, 0);
}

// A device that is gone: one error, nothing hangs or leaks, and a checkpoint that was there stays.
TEST(CudaProgram, ALostDeviceIsReportedOnce) {
  FakeGpu gpu;
  TemporaryFolder folder;
  std::string checkpoint = folder.path("checkpoint");
  {
    PROGRAM(program, onFakeGpu(gpu, compiled(kModel, passes::PipelineKind::train)));
    for (int i = 0; i < 3; ++i) step(program, 5);
    llvm::cantFail(frontend::saveCheckpoint(program, checkpoint, llvm::json::Object{{"step", 3}}));
    auto saved = weights(program, "w1");
    Batch batch(5);
    unsigned started = llvm::cantFail(program.start("train_step", batch.inputs()));
    gpu.failing = "cuEventSynchronize"; // where the host waits for the loss
    float loss;
    auto error = program.finish(started, {{ir::DType::f32, {}, &loss}});
    EXPECT_TRUE(error.isA<DeviceError>());
    std::string text = llvm::toString(std::move(error));
    EXPECT_NE(text.find("cuEventSynchronize failed for @train_step: unspecified launch failure"), std::string::npos)
        << text;
    gpu.failing = "cuStreamSynchronize";
    error = frontend::saveCheckpoint(program, checkpoint, llvm::json::Object{{"step", 4}});
    EXPECT_TRUE(error.isA<DeviceError>());
    llvm::consumeError(std::move(error));
    PROGRAM(cpu, compile(compiled(kModel, passes::PipelineKind::train), ir::Target{}, {}));
    llvm::cantFail(frontend::loadCheckpoint(cpu, checkpoint, {}));
    EXPECT_EQ(weights(cpu, "w1"), saved);
    EXPECT_EQ(llvm::cantFail(frontend::readCheckpointInfo(checkpoint)).getInteger("step").getValueOr(0), 3);
  }
  gpu.failing = "";
  EXPECT_EQ(gpu.openHandles, 0);
}

TEST(CudaProgram, AKernelThatDoesNotCompileIsNamedAndKept) {
  FakeGpu gpu;
  CudaPlatform platform = platformOf(gpu);
  platform.compile = [](const KernelSource &kernel) -> llvm::Expected<CompiledKernel> {
    return llvm::make_error<KernelCompileError>(kernel.name.str(), "sm_75", "NVRTC_ERROR_COMPILATION", "k.cu(3): oops");
  };
  auto program = compileForCuda(compiled(kModel, passes::PipelineKind::infer), cudaTarget(gpu.device()), {}, platform);
  ASSERT_FALSE(bool(program));
  fusor::Error error = frontend::toPublic(program.takeError());
  EXPECT_EQ(error.exitCode(), 69);
  llvm::StringRef text(error.text());
  EXPECT_TRUE(text.contains("k.cu(3): oops")) << text.str();
  auto path = text.split("its text is kept: ").second.split('\n').first;
  auto file = llvm::MemoryBuffer::getFile(path);
  ASSERT_TRUE(bool(file)) << text.str();
  auto name = llvm::sys::path::filename(path).split('-').first;
  EXPECT_TRUE((*file)->getBuffer().contains(name)) << path.str();
  llvm::sys::fs::remove(path);
}

// A folder that takes no files: everything works, and it is said once.
TEST(CudaProgram, ACacheThatCannotBeWrittenIsSaidOnce) {
  FakeGpu gpu;
  TemporaryFolder folder;
  std::shared_ptr<Cache> cache = llvm::cantFail(Cache::open(folder.path("cache")));
  std::ofstream(folder.path("cache") + "/v1/cubin") << "a file where a folder should be";
  std::ofstream(folder.path("cache") + "/v1/gemm-plan") << "likewise";
  ::setenv("FUSOR_CUBLASLT", FUSOR_FAKE_CUBLASLT, 1);
  CudaPlatform platform = platformOf(gpu, cache);
  platform.cublasLt = llvm::cantFail(CublasLt::load(platform.context));
  CompileOptions options;
  options.graphs = false;
  PROGRAM(program, compileForCuda(compiled(kModel, passes::PipelineKind::train), cudaTarget(gpu.device()), options,
                                  std::move(platform)));
  EXPECT_GT(step(program, 5), 0);
  ::unsetenv("FUSOR_CUBLASLT");
  int said = 0;
  for (const std::string &note : program.compileStats().notes) said += llvm::StringRef(note).contains("not kept");
  EXPECT_EQ(said, 1) << llvm::join(program.compileStats().notes, "\n");
}

// They compile the same kernels at once and write the same entries; each must end as if alone.
TEST(CudaProgram, EightProcessesOnOneColdCache) {
  TemporaryFolder folder;
  std::vector<pid_t> children;
  for (int child = 0; child < 8; ++child) {
    pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid > 0) {
      children.push_back(pid);
      continue;
    }
    FakeGpu gpu;
    std::shared_ptr<Cache> cache = llvm::cantFail(Cache::open(folder.path("cache")));
    auto program = onFakeGpu(gpu, compiled(kModel, passes::PipelineKind::infer), {}, cache);
    if (!program) ::_exit(1);
    llvm::cantFail((*program)->initialize(3));
    float loss = step(**program, 5, "forward");
    std::ofstream(folder.path("loss" + std::to_string(child))) << llvm::toHex({reinterpret_cast<char *>(&loss), 4});
    ::_exit((*program)->compileStats().notes.empty() ? 0 : 2);
  }
  for (pid_t pid : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  std::set<std::string> losses;
  for (int child = 0; child < 8; ++child) {
    std::string loss;
    std::ifstream(folder.path("loss" + std::to_string(child))) >> loss;
    losses.insert(loss);
  }
  EXPECT_EQ(losses.size(), 1u);
  EXPECT_EQ(losses.begin()->size(), 8u);
  FakeGpu gpu;
  std::shared_ptr<Cache> cache = llvm::cantFail(Cache::open(folder.path("cache")));
  EXPECT_TRUE(cache->verify().empty());
  PROGRAM(ninth, onFakeGpu(gpu, compiled(kModel, passes::PipelineKind::infer), {}, cache));
  EXPECT_EQ(ninth.compileStats().compiled, 0u);
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
