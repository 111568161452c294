// fp8-split: fewer bytes at the peak of a training step, for a few kernels more, and the same values.
#include "frontend/nn/modules.h"
#include "passes/memory/memory_plan.h"
#include "passes/pipeline.h"
#include "tests/passes/models.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::test {
namespace {

std::unique_ptr<ir::Module> trainStep(const nn::GptConfig &config, bool isSplit, unsigned *taken = nullptr) {
  auto module = nn::gptForward(config);
  passes::PassOptions options;
  options.precision = ir::DType::bf16;
  options.fp8.emplace();
  options.target.hasFp8 = options.target.hasCublasLt = true;
  options.target.kind = ir::DeviceKind::cuda, options.target.tier = ir::ArchTier::sm90a;
  if (!isSplit) options.disabledRules.insert("fp8-split");
  passes::PassContext context(options);
  EXPECT_SUCCESS(passes::runPipeline(*module, passes::PipelineKind::train, context));
  if (taken)
    *taken = llvm::count_if(context.decisions(), [](const passes::Decision &d) {
      return d.rule == "fp8-split" && d.function == "train_step" && d.kind == passes::Decision::Kind::taken;
    });
  return module;
}

int64_t arenaOf(const ir::Module &module) {
  return llvm::cantFail(passes::planMemory(*module.function("train_step"), passes::middleOfRanges(module)))
      .lowerBoundBytes;
}

TEST(Fp8Split, FewerBytesAtThePeakWhateverTheLayers) {
  for (int64_t layers : {2, 6}) {
    unsigned taken = 0;
    auto whole = trainStep({.layers = layers}, false), split = trainStep({.layers = layers}, true, &taken);
    EXPECT_GE(taken, 1u);
    EXPECT_LE(taken, 4u);
    EXPECT_LT(arenaOf(*split), arenaOf(*whole));
    auto ops = [](const ir::Module &module) { return module.function("train_step")->block().ops().size(); };
    EXPECT_EQ(ops(*split), ops(*whole) + taken);
  }
}

TEST(Fp8Split, ValuesAreTheSame) {
  nn::GptConfig config{.vocab = 32, .width = 32, .heads = 2, .layers = 2, .ffn = 64, .context = 16};
  unsigned taken = 0;
  auto whole = trainStep(config, false), split = trainStep(config, true, &taken);
  EXPECT_GE(taken, 1u);
  expectSameStep(*whole, *split, {{"B", 2}});
}

} // namespace
} // namespace fusor::test
