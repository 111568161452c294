// fp8-statistics: statistics of norms do not wait over the peak of a training step, and the values are the same.
#include "frontend/nn/modules.h"
#include "passes/fp8/peak.h"
#include "passes/pipeline.h"
#include "tests/passes/models.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::test {
namespace {

// A wide vocabulary puts the peak at the head, behind all forward norms and in front of their gradients.
const nn::GptConfig kWideHead{.vocab = 2048, .width = 64, .heads = 2, .layers = 8, .ffn = 256, .context = 32};

std::unique_ptr<ir::Module> stepWith(const nn::GptConfig &config, passes::PassOptions options,
                                     unsigned *taken = nullptr) {
  auto module = nn::gptForward(config);
  options.precision = ir::DType::bf16;
  options.target.hasFp8 = options.target.hasCublasLt = true;
  options.target.kind = ir::DeviceKind::cuda, options.target.tier = ir::ArchTier::sm90a;
  passes::PassContext context(options);
  EXPECT_SUCCESS(passes::runPipeline(*module, passes::PipelineKind::train, context));
  if (taken)
    *taken = llvm::count_if(context.decisions(), [](const passes::Decision &d) {
      return d.rule == "fp8-statistics" && d.kind == passes::Decision::Kind::taken;
    });
  return module;
}
passes::PassOptions fp8(bool isPaid) {
  passes::PassOptions options;
  options.fp8.emplace();
  options.disabledRules.insert("fp8-split"); // slow, and has its own tests
  if (!isPaid) options.disabledRules.insert("fp8-statistics");
  return options;
}

int64_t arenaInPlace(const ir::Module &module) {
  const ir::Function &step = *module.function("train_step");
  return llvm::cantFail(passes::planInPlace(step, passes::middleOfRanges(module))).lowerBoundBytes;
}

TEST(Fp8Statistics, DoNotWaitOverThePeak) {
  unsigned taken = 0;
  auto without = stepWith(kWideHead, fp8(false)), with = stepWith(kWideHead, fp8(true), &taken);
  EXPECT_GE(taken, 1u);
  EXPECT_LE(taken, 4u) << "a bounded part of what the step reads";
  auto ops = [](const ir::Module &module) { return module.function("train_step")->block().ops().size(); };
  EXPECT_EQ(ops(*with), ops(*without) + taken);
  EXPECT_LT(arenaInPlace(*with), arenaInPlace(*without));
}

TEST(Fp8Statistics, OnlyFp8Pays) {
  unsigned taken = 0;
  stepWith(kWideHead, passes::PassOptions(), &taken);
  EXPECT_EQ(taken, 0u);
}

TEST(Fp8Statistics, ValuesAreTheSame) {
  unsigned taken = 0;
  auto without = stepWith(kWideHead, fp8(false)), with = stepWith(kWideHead, fp8(true), &taken);
  ASSERT_GE(taken, 1u);
  expectSameStep(*without, *with, {{"B", 1}});
}

} // namespace
} // namespace fusor::test
