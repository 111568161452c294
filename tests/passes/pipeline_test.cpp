// The whole train and infer pipelines under each kind of option: what the device is given (layout and fusion run)
// computes what the mathematics before it does, to the bit.
#include "models.h"
#include "passes/pipeline.h"

using namespace fusor;
using namespace fusor::test;

namespace {

struct Setting {
  const char *name;
  ir::DType precision;
  int64_t accumulate;
  std::optional<double> clipNorm;
};

class Pipelines : public testing::TestWithParam<Setting> {};

void expectSame(const ir::RefState &a, const ir::RefState &b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto &entry : a) {
    ASSERT_TRUE(b.count(entry.first())) << entry.first().str();
    const auto &other = b.find(entry.first())->second;
    EXPECT_EQ(entry.second.dtype, other.dtype) << entry.first().str();
    EXPECT_EQ(entry.second.data, other.data) << entry.first().str();
  }
}

TEST_P(Pipelines, FusedEqualsUnfused) {
  passes::PassOptions options;
  options.precision = GetParam().precision;
  options.accumulate = GetParam().accumulate;
  options.optimizer.clipNorm = GetParam().clipNorm;
  std::vector<std::string> mathematics;
  for (const passes::Pass &pass : passes::pipeline(passes::PipelineKind::train)) {
    if (pass.name == "layout") break; // from here on the program is arranged, not changed
    mathematics.push_back(pass.name.str());
  }
  auto plain = transformer(), fused = transformer();
  passes::PassContext plainContext(options), context(options);
  ASSERT_FALSE(passes::runPasses(*plain, mathematics, plainContext));
  ASSERT_FALSE(passes::runPipeline(*fused, passes::PipelineKind::train, context));
  ASSERT_EQ(plain->functions().size(), fused->functions().size());
  ir::RefState state = initialState(*plain);
  for (const auto &function : plain->functions()) {
    auto inputs = inputsFor(*function, {{"B", 2}}, 7);
    auto a = evaluateOrFail(*function, inputs, state);
    auto b = evaluateOrFail(*fused->function(function->name()), inputs, state);
    ASSERT_EQ(a.results.size(), b.results.size());
    for (size_t i = 0; i < a.results.size(); ++i) EXPECT_EQ(a.results[i].data, b.results[i].data);
    expectSame(a.updates, b.updates);
    EXPECT_TRUE(b.gradients.empty());
  }
}

TEST(PipelineInfer, ReadsTheSameWeightsInBf16) {
  passes::PassOptions options;
  options.precision = ir::DType::bf16;
  options.wideHeadBelow = 0;
  auto module = transformer(), exact = transformer();
  passes::PassContext context(options);
  ASSERT_FALSE(passes::runPipeline(*module, passes::PipelineKind::infer, context));
  EXPECT_NE(module->persistent("fc1.weight.bf16"), nullptr);
  EXPECT_EQ(module->functions().size(), 1u);
  auto inputs = inputsFor(*exact->function("forward"), {{"B", 2}}, 7);
  ir::RefState state = initialState(*exact);
  double expected = evaluateOrFail(*exact->function("forward"), inputs, state).results[0].data[0];
  double found = evaluateOrFail(*module->function("forward"), inputs, state).results[0].data[0];
  EXPECT_NEAR(found, expected, 0.02 * expected);
  EXPECT_NE(found, expected);
}

INSTANTIATE_TEST_SUITE_P(
    Options, Pipelines,
    testing::Values(Setting{"f32", ir::DType::f32, 1, std::nullopt}, Setting{"bf16", ir::DType::bf16, 1, std::nullopt},
                    Setting{"f16", ir::DType::f16, 1, std::nullopt}, Setting{"clipped", ir::DType::bf16, 1, 0.5},
                    Setting{"accumulated", ir::DType::bf16, 3, std::nullopt}, Setting{"all", ir::DType::f16, 2, 0.5}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
