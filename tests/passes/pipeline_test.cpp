// The whole train and infer pipelines under each kind of option: what the device is given (layout and fusion run)
// computes what the mathematics before it does, to the bit.
#include "models.h"
#include "passes/pipeline.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

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

// A library's products of transposed copies are the same sums, and every product is listed with its role.
TEST(PipelineFp8, TransposedProductsAreTheSame) {
  passes::PassOptions options;
  options.precision = ir::DType::bf16;
  options.fp8.emplace().select = "fc";
  auto plain = transformer(), turned = transformer();
  passes::PassContext plainContext(options);
  ASSERT_FALSE(passes::runPipeline(*plain, passes::PipelineKind::train, plainContext));
  options.target.hasFp8 = options.target.hasCublasLt = true;
  passes::PassContext context(options);
  ASSERT_FALSE(passes::runPipeline(*turned, passes::PipelineKind::train, context));
  ir::RefState state = initialState(*plain);
  auto inputs = inputsFor(*plain->function("train_step"), {{"B", 2}}, 7);
  auto a = evaluateOrFail(*plain->function("train_step"), inputs, state);
  auto b = evaluateOrFail(*turned->function("train_step"), inputs, state);
  EXPECT_EQ(a.results[0].data, b.results[0].data);
  unsigned transposed = 0;
  for (const auto &entry : b.updates) {
    auto same = a.updates.find(entry.first());
    if (same != a.updates.end())
      EXPECT_EQ(entry.second.data, same->second.data) << entry.first().str();
    else
      transposed += entry.first().endswith(".fp8.t");
  }
  EXPECT_EQ(transposed, 2u);

  std::vector<std::string> products;
  for (const passes::Decision &d : context.decisions())
    if (d.rule == "gemm" && d.function == "train_step") products.push_back((name(d.kind) + " " + d.reason).str());
  auto listed = [&](llvm::StringRef role, llvm::StringRef why) {
    return llvm::count_if(products, [&](llvm::StringRef p) { return p.contains(role) && p.contains(why); });
  };
  EXPECT_EQ(listed("taken forward", "f8e4m3 x f8e4m3, fast accumulation"), 2);
  EXPECT_EQ(listed("taken input gradient", "f8e5m2 x f8e4m3"), 2);
  EXPECT_EQ(listed("taken weight gradient", "f8e5m2 x f8e4m3"), 2);
  EXPECT_GE(listed("refused forward", "has no match of the selection 'fc'"), 1) << llvm::join(products, "\n");
  EXPECT_GE(listed("refused weight gradient", "has no match of the selection 'fc'"), 1) << llvm::join(products, "\n");
  EXPECT_GE(listed("", "terms a sum are no multiple of 16"), 1) << llvm::join(products, "\n");
}

INSTANTIATE_TEST_SUITE_P(
    Options, Pipelines,
    testing::Values(Setting{"f32", ir::DType::f32, 1, std::nullopt}, Setting{"bf16", ir::DType::bf16, 1, std::nullopt},
                    Setting{"f16", ir::DType::f16, 1, std::nullopt}, Setting{"clipped", ir::DType::bf16, 1, 0.5},
                    Setting{"accumulated", ir::DType::bf16, 3, std::nullopt}, Setting{"all", ir::DType::f16, 2, 0.5}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
