// MiniGPT's training step: every kernel in the emulator, under NVRTC, and as committed text.
#include "codegen/emit/emit.h"
#include "frontend/nn/modules.h"
#include "ir/graph/printer.h"
#include "passes/pipeline.h"
#include "runtime/cuda/nvrtc.h"
#include "tests/codegen/kernel_checker.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <cstdlib>

using namespace fusor;
using namespace fusor::codegen;
using namespace fusor::codegen::tests;

namespace {

std::unique_ptr<ir::Module> trainStep(const nn::GptConfig &config, ir::DType precision) {
  auto module = nn::gptForward(config);
  passes::PassOptions options;
  options.precision = precision;
  passes::PassContext context(options);
  if (auto error = passes::runPipeline(*module, passes::PipelineKind::train, context))
    ADD_FAILURE() << llvm::toString(std::move(error));
  return module;
}
std::unique_ptr<ir::Module> trainStep(llvm::StringRef config, ir::DType precision) {
  return trainStep(*nn::configuration(config), precision);
}

// Tensor cores where the precision has some.
ir::Target cuda(ir::DType precision = ir::DType::bf16) {
  ir::Target target;
  target.kind = ir::DeviceKind::cuda;
  target.tier = precision == ir::DType::f32 ? ir::ArchTier::simt : ir::ArchTier::sm80;
  return target;
}

void expectAllTaken(const FunctionKernels &kernels) {
  for (const auto &refused : kernels.refused) ADD_FAILURE() << refused.reason << "\n" << ir::printOp(*refused.op);
}

TEST(MiniGpt, EveryKernelOfTheTinyTrainingStep) {
  KernelChecker checker;
  KernelChecker::Options options;
  options.classes = 96;
  options.inPlaceToo = false; // time: the other tests do
  options.deviation = 0.1;
  options.tolerance = 8; // long sums that cancel, e.g. gradients of weights
  for (ir::DType precision : {ir::DType::f32, ir::DType::bf16}) {
    options.tier = cuda(precision).tier;
    checker.add(trainStep("tiny", precision), {{{"B", 1}}}, options);
  }
  checker.run();
}

TEST(MiniGpt, LayersShareKernels) {
  nn::GptConfig config = *nn::configuration("tiny");
  std::vector<size_t> counts;
  for (int64_t layers : {2, 3, 12}) {
    config.layers = layers;
    auto module = trainStep(config, ir::DType::bf16);
    auto kernels = kernelsOf(*module->function("train_step"), cuda());
    expectAllTaken(kernels);
    counts.push_back(kernels.kernels.size());
  }
  EXPECT_EQ(counts[0], counts[1]);
  EXPECT_EQ(counts[1], counts[2]);
  EXPECT_LE(counts[2], 50u);
}

TEST(MiniGpt, TextIsTheSameEachTimeAndSelfContained) {
  auto module = trainStep("small", ir::DType::bf16), again = trainStep("small", ir::DType::bf16);
  auto a = kernelsOf(*module, cuda()), b = kernelsOf(*again, cuda());
  ASSERT_EQ(a.kernels.size(), b.kernels.size());
  llvm::StringSet<> names;
  for (unsigned i = 0; i < a.kernels.size(); ++i) {
    EXPECT_EQ(a.kernels[i].kernel.source, b.kernels[i].kernel.source);
    EXPECT_EQ(a.kernels[i].kernel.source.find("#include"), std::string::npos);
    EXPECT_TRUE(names.insert(a.kernels[i].kernel.name).second) << a.kernels[i].kernel.name << " is there twice";
    EXPECT_GE(a.kernels[i].uses, 1u);
  }
}

std::string snapshotPath(llvm::StringRef config, ir::DType precision, llvm::StringRef extension) {
  return (FUSOR_SOURCE_DIR "/tests/codegen/snapshots/" + config + "_" + ir::name(precision) + extension).str();
}

void writeFile(const std::string &path, llvm::StringRef text) {
  std::error_code error;
  llvm::raw_fd_ostream(path, error) << text;
  ASSERT_FALSE(error) << path << ": " << error.message();
}

std::string readFile(const std::string &path) {
  auto file = llvm::MemoryBuffer::getFile(path);
  if (file) return (*file)->getBuffer().str();
  ADD_FAILURE() << path << ": " << file.getError().message() << "; run with FUSOR_UPDATE_SNAPSHOTS=1";
  return "";
}

// The generated part of each kernel of a fused module. The module is committed too (.fir), so that a change of passes
// leaves the snapshots alone. FUSOR_UPDATE_SNAPSHOTS=1 writes both anew.
TEST(MiniGpt, KernelsAreAsCommitted) {
#ifdef __clang__ // See codegen/README.md: expansions call the builder in arguments, whose order is the compiler's.
  GTEST_SKIP() << "the committed kernels are those of a Fusor built with g++";
#endif
  bool update = std::getenv("FUSOR_UPDATE_SNAPSHOTS");
  for (auto [config, precision] : {std::pair{"tiny", ir::DType::f32}, {"seed", ir::DType::bf16}}) {
    std::string fir = snapshotPath(config, precision, ".fir"), path = snapshotPath(config, precision, ".cu");
    if (update) writeFile(fir, trainStep(config, precision)->str());
    auto module = parseOrFail(readFile(fir));
    auto kernels = kernelsOf(*module, cuda(precision));
    expectAllTaken(kernels);
    std::string text;
    for (const DistinctKernel &distinct : kernels.kernels) {
      llvm::StringRef source = distinct.kernel.source;
      text += source.substr(source.find("// ---- " + distinct.kernel.name + " ----")).str() + "\n";
    }
    if (update) writeFile(path, text);
    std::string committed = readFile(path);
    llvm::StringRef rest = committed, have = text;
    for (unsigned line = 1; !rest.empty() || !have.empty(); ++line) { // the first difference, not two thousand lines
      auto [want, moreWant] = rest.split('\n');
      auto [found, moreFound] = have.split('\n');
      ASSERT_EQ(found.str(), want.str()) << path << ":" << line << "; FUSOR_UPDATE_SNAPSHOTS=1 writes it anew";
      rest = moreWant, have = moreFound;
    }
  }
}

TEST(MiniGpt, CompilesForEveryArchitecture) {
  auto nvrtc = runtime::loadNvrtc(runtime::NvrtcOptions::fromEnvironment());
  if (!nvrtc) GTEST_SKIP() << "no NVRTC here: " << llvm::toString(nvrtc.takeError());
  for (auto [config, precision] : {std::pair{"tiny", ir::DType::f32}, {"small", ir::DType::bf16}}) {
    auto module = trainStep(config, precision);
    auto best = kernelsOf(*module, cuda(precision)), simt = kernelsOf(*module, cuda(ir::DType::f32));
    for (const char *arch : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120"}) {
      if (!nvrtc->supports(std::atoi(arch + 3))) continue;
      // Every kernel once for the oldest and once for the newest, every seventh for the others, and attention: one
      // compile is 0.1 s or more.
      bool all = llvm::StringRef(arch) == (precision == ir::DType::f32 ? "sm_75" : "sm_90a");
      const FunctionKernels &kernels = llvm::StringRef(arch) == "sm_75" ? simt : best;
      for (unsigned i = 0; i < kernels.kernels.size(); ++i) {
        bool isAttention = llvm::StringRef(kernels.kernels[i].kernel.name).contains("attention");
        if (!all && i % 7 != 0 && !isAttention) continue;
        const Kernel &kernel = kernels.kernels[i].kernel;
        std::vector<std::string> flags = {"--std=c++17"};
        auto compiled = nvrtc->compile({kernel.source, kernel.name, arch, flags});
        if (!compiled) {
          ADD_FAILURE() << llvm::toString(compiled.takeError());
          return;
        }
        EXPECT_EQ(compiled->log.find("warning"), std::string::npos) << kernel.name << " for " << arch << ":\n"
                                                                    << compiled->log;
      }
    }
  }
}

} // namespace
