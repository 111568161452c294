// What a program on a GPU says about itself for a dump, and a kernel of it run by itself: on the fake GPU.
#include "frontend/dump/captured_step.h"
#include "frontend/replay/comparison.h"
#include "frontend/replay/kernel_runner.h"
#include "frontend/text/parser.h"
#include "passes/pipeline.h"
#include "runtime/cache/edited_kernel.h"
#include "runtime/cuda/cuda_program.h"
#include "tests/runtime/temporary_folder.h"
#include "tests/support/fake_gpu/fake_gpu.h"
#include "tests/support/replaced.h"
#include "llvm/ADT/STLExtras.h"
#include <dlfcn.h>
#include <gtest/gtest.h>

using namespace fusor;
using namespace fusor::runtime;

namespace {

constexpr char kLayers[] = R"(
dim B in 1..64
param @w1 : f32[8, 6] {init = normal(0.5)}
param @b1 : f32[8] {init = normal(0.5)}
param @w2 : f32[8, 8] {init = normal(0.5)}
func @forward(%x: f32[B, 6]) -> f32[B, 8], f32[8], f32[B, 8] {
  %blocks.0.h = linear %x, @w1, bias = @b1 : f32[B, 8]
  %blocks.0.g = gelu %blocks.0.h : f32[B, 8]
  %blocks.0.s = sum %blocks.0.g {dims = [0]} : f32[8]
  %head = linear %blocks.0.g, @w2 : f32[B, 8]
  return %blocks.0.g, %blocks.0.s, %head
}
)";

std::unique_ptr<ir::Module> layers() {
  auto module = llvm::cantFail(frontend::parseModule(kLayers, "test.fir"));
  passes::PassOptions options;
  passes::PassContext context(options);
  llvm::cantFail(passes::runPipeline(*module, passes::PipelineKind::infer, context));
  return module;
}

CudaPlatform emulatedPlatform(const tests::FakeGpu &gpu, std::shared_ptr<Cache> cache = nullptr) {
  CudaPlatform platform;
  platform.context = llvm::cantFail(CudaContext::around(gpu.functions(), gpu.device()));
  platform.compile = [](const KernelSource &kernel) -> llvm::Expected<CompiledKernel> {
    return CompiledKernel{true, kernel.source.str(), ""};
  };
  platform.compilerVersion = "emulator", platform.arch = "compute_75";
  platform.cache = std::move(cache);
  return platform;
}

/// One run of @forward on fixed inputs.
struct Forward {
  std::vector<float> x = std::vector<float>(5 * 6), g = std::vector<float>(5 * 8), s = std::vector<float>(8), head = g;
  std::vector<TensorView> inputs, outputs;
  Forward() {
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.7f * static_cast<float>(i));
    inputs = {{ir::DType::f32, {5, 6}, x.data()}};
    outputs = {
        {ir::DType::f32, {5, 8}, g.data()}, {ir::DType::f32, {8}, s.data()}, {ir::DType::f32, {5, 8}, head.data()}};
  }
  llvm::Error run(Program &program) { return program.run("forward", inputs, outputs); }
};

ir::SymbolValues fiveRows() {
  ir::SymbolValues symbols;
  symbols["B"] = 5;
  return symbols;
}

TEST(GpuDump, DescribesWhatItLaunches) {
  tests::FakeGpu gpu;
  CompileOptions options;
  options.forDump = true;
  auto program = llvm::cantFail(compileForCuda(layers(), cudaTarget(gpu.device()), options, emulatedPlatform(gpu)));
  llvm::cantFail(program->initialize(3));
  Forward forward;
  program->setProfiling(true);
  for (int i = 0; i < 2; ++i) llvm::cantFail(forward.run(*program));
  program->setProfiling(false);
  auto described = program->describe("forward", fiveRows());
  ASSERT_TRUE(bool(described)) << llvm::toString(described.takeError());
  EXPECT_EQ(described->device, "Fake GPU");
  ASSERT_EQ(described->launches.size(), program->kernelsPerRun());
  auto times = program->stepTimes();
  ASSERT_EQ(times.size(), described->launches.size());
  for (const auto &[launch, time] : llvm::zip(described->launches, times)) {
    EXPECT_EQ(launch.name, time.name);
    ASSERT_TRUE(launch.kernel.has_value());
    EXPECT_GT(launch.grid, 0);
  }
  for (const DescribedKernel &kernel : described->kernels) {
    EXPECT_EQ(kernel.registers, 40); // as the fake driver says
    EXPECT_EQ(kernel.spillBytes, 0);
    EXPECT_EQ(kernel.ptx, kernel.code.source); // the fake compiler's image
    EXPECT_EQ(kernel.cubin, "");
  }
  bool hasCompiled =
      llvm::any_of(program->compileStats().spans, [](const CompileSpan &s) { return s.what == "nvrtc"; });
  EXPECT_TRUE(hasCompiled);
}

// Line numbers are an option of the compiler: an entry of its own, and none of the other's.
TEST(GpuDump, KernelsOfADumpAreOtherEntriesOfTheCache) {
  tests::FakeGpu gpu;
  TemporaryFolder folder;
  std::shared_ptr<Cache> cache = llvm::cantFail(Cache::open(folder.path("cache")));
  auto compiled = [&](bool forDump) {
    CompileOptions options;
    options.forDump = forDump;
    auto program =
        llvm::cantFail(compileForCuda(layers(), cudaTarget(gpu.device()), options, emulatedPlatform(gpu, cache)));
    return program->compileStats().compiled;
  };
  unsigned kernels = compiled(false);
  EXPECT_GT(kernels, 0u);
  EXPECT_EQ(compiled(true), kernels);
  EXPECT_EQ(compiled(true), 0u);
  EXPECT_EQ(compiled(false), 0u);
}

/// Writes the folder of each kernel of the step that `step` is in, as a dump has it.
void writeFolders(const std::string &place, const Description &described, const StepContent &content) {
  auto folder = llvm::cantFail(frontend::DumpFolder::create(place));
  for (unsigned kernel : described.steps[content.step].kernels) {
    const codegen::Kernel &code = described.kernels[kernel].code;
    std::string name = "kernels/" + code.name + "/";
    llvm::cantFail(folder.write(name + "kernel.cu", code.source));
    llvm::cantFail(folder.write(name + "kernel.original.cu", code.source));
    llvm::cantFail(folder.write(name + "kernel.json", "{\"name\": \"" + code.name + "\"}"));
    llvm::cantFail(frontend::writeCapturedStep(folder, described, kernel, content));
  }
  llvm::cantFail(folder.commit());
}

// Every step of a run, captured, runs by itself with the same bits; `library` is cuBLASLt or null.
void replayAll(const std::shared_ptr<const CublasLt> &library, tests::FakeGpu &gpu, CudaPlatform platform) {
  TemporaryFolder folder;
  platform.cublasLt = library;
  CompileOptions options;
  options.graphs = false; // the fake library works at once, and is not recorded
  auto program = llvm::cantFail(compileForCuda(layers(), cudaTarget(gpu.device()), options, platform));
  llvm::cantFail(program->initialize(3));
  Forward forward;
  llvm::cantFail(forward.run(*program));
  std::vector<float> uncaptured = forward.g;
  std::vector<StepContent> contents;
  program->captureSteps({[](unsigned) { return true; },
                         [&](StepContent content) {
                           contents.push_back(std::move(content));
                           return llvm::Error::success();
                         }});
  llvm::cantFail(forward.run(*program));
  program->captureSteps({});
  EXPECT_EQ(forward.g, uncaptured);
  auto described = llvm::cantFail(program->describe("forward", fiveRows()));
  ASSERT_EQ(contents.size(), described.steps.size());
  unsigned replayed = 0, products = 0;
  for (const StepContent &content : contents) {
    const DescribedStep &step = described.steps[content.step];
    products += !content.product.empty();
    EXPECT_FALSE(step.algorithm.empty() && step.kernels.empty());
    if (step.kernels.empty()) continue;
    std::string place = folder.path("d" + std::to_string(content.step));
    writeFolders(place, described, content);
    auto given = frontend::readReplayCase(place + "/kernels/" + described.kernels[step.kernels.front()].code.name);
    ASSERT_TRUE(bool(given)) << llvm::toString(given.takeError());
    auto text = [&](const std::string &kernel) { return llvm::StringRef(given->texts.at(kernel).now); };
    auto onGpu = frontend::runOnGpu(*given, text, platform);
    ASSERT_TRUE(bool(onGpu)) << llvm::toString(onGpu.takeError());
    EXPECT_GT(onGpu->ms, 0);
    EXPECT_EQ(onGpu->outputs, content.outputs);
    auto emulated = frontend::runInEmulator(*given, text, folder.path("emulator"));
    ASSERT_TRUE(bool(emulated)) << llvm::toString(emulated.takeError());
    EXPECT_EQ(emulated->outputs, content.outputs);
    auto reference = llvm::cantFail(frontend::referenceOf(*given));
    for (unsigned i = 0; i < reference.size(); ++i) {
      double allowed = frontend::allowedFor(*given, i, reference[i]);
      EXPECT_EQ(frontend::differenceOf(ir::DType::f32, onGpu->outputs[i], reference[i], allowed).differing, 0);
    }
    ++replayed;
  }
  EXPECT_GT(replayed, 0u);
  EXPECT_EQ(products > 0, library != nullptr);
}

TEST(GpuDump, CapturedStepsRunByThemselves) {
  tests::FakeGpu gpu;
  replayAll(nullptr, gpu, emulatedPlatform(gpu));
}

// The loop behind a library's product goes on from what the library made.
TEST(GpuDump, SoDoTheLoopsBehindLibraryProducts) {
  tests::FakeGpu gpu;
  ::setenv("FUSOR_CUBLASLT", FUSOR_FAKE_CUBLASLT, 1);
  CudaPlatform platform = emulatedPlatform(gpu);
  replayAll(llvm::cantFail(CublasLt::load(platform.context)), gpu, platform);
  ::unsetenv("FUSOR_CUBLASLT");
}

// Nsight shows functions, layers and steps: the first run is launch by launch, the second makes the graph, then one
// call.
TEST(GpuDump, RangesAreNamedAfterFunctionsAndLayers) {
  tests::FakeGpu gpu;
  CudaPlatform platform = emulatedPlatform(gpu);
  platform.nvtx = Nvtx::open(FUSOR_FAKE_NVTX);
  ASSERT_TRUE(platform.nvtx);
  EXPECT_EQ(Nvtx::open("/no/such/tool.so"), nullptr);
  auto listen = reinterpret_cast<void (*)(std::string *)>(dlsym(dlopen(FUSOR_FAKE_NVTX, RTLD_LAZY), "listenTo"));
  ASSERT_TRUE(listen);
  auto program = llvm::cantFail(compileForCuda(layers(), cudaTarget(gpu.device()), {}, platform));
  llvm::cantFail(program->initialize(3));
  Forward forward;
  std::string heard[Program::kMostAhead + 2];
  for (std::string &run : heard) {
    listen(&run);
    llvm::cantFail(forward.run(*program));
    listen(nullptr);
    EXPECT_EQ(llvm::StringRef(run).count("</>"), llvm::StringRef(run).count("<") - llvm::StringRef(run).count("</>"));
  }
  for (int i : {0, 1}) {
    EXPECT_TRUE(llvm::StringRef(heard[i]).startswith("<@forward><blocks.0><blocks.0.g: ")) << heard[i];
    EXPECT_NE(heard[i].find("</></><head: "), std::string::npos) << heard[i]; // of no layer
  }
  EXPECT_EQ(heard[Program::kMostAhead + 1], "<@forward></>");
}

TEST(GpuDump, AnInstalledTextRunsAndIsSaid) {
  tests::FakeGpu gpu;
  TemporaryFolder folder;
  std::shared_ptr<Cache> cache = llvm::cantFail(Cache::open(folder.path("cache")));
  auto make = [&](bool strict) {
    CompileOptions options;
    options.strict = strict;
    return compileForCuda(layers(), cudaTarget(gpu.device()), options, emulatedPlatform(gpu, cache));
  };
  Forward before, after;
  std::string name;
  {
    auto program = llvm::cantFail(make(true));
    llvm::cantFail(program->initialize(3));
    llvm::cantFail(before.run(*program));
    auto described = llvm::cantFail(program->describe("forward", fiveRows()));
    const codegen::Kernel *gelu = nullptr;
    for (const DescribedKernel &kernel : described.kernels)
      if (llvm::StringRef(kernel.code.source).contains("0.044715f")) gelu = &kernel.code;
    ASSERT_TRUE(gelu);
    name = gelu->name;
    llvm::cantFail(
        cache->put(kEditedKernel, editedKernelKey(gelu->source), tests::replaced(gelu->source, "0.044715f", "0.5f")));
  }
  auto program = llvm::cantFail(make(false));
  ASSERT_EQ(program->fallbacks().size(), 1u);
  EXPECT_EQ(program->fallbacks()[0].where, "1 kernel");
  EXPECT_NE(program->fallbacks()[0].reason.find("edited texts run in place of the generated ones: " + name),
            std::string::npos);
  llvm::cantFail(program->initialize(3));
  llvm::cantFail(after.run(*program));
  EXPECT_NE(before.g, after.g);
  auto described = llvm::cantFail(program->describe("forward", fiveRows()));
  EXPECT_TRUE(llvm::any_of(described.kernels, [&](const DescribedKernel &k) { // a dump shows what ran
    return k.code.name == name && k.edited.find("0.5f") != std::string::npos &&
           k.code.source.find("0.044715f") != std::string::npos;
  }));
  auto strict = make(true);
  ASSERT_FALSE(bool(strict));
  EXPECT_NE(llvm::toString(strict.takeError()).find("1 kernel fell back: edited texts run in place"),
            std::string::npos);
  EXPECT_TRUE(llvm::cantFail(cache->clear()) > 0);
  EXPECT_TRUE(bool(make(true)));
}

} // namespace
