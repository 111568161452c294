// passes/gradient: against central differences of the float64 reference, element by element.
#include "models.h"
#include "passes/gradient/gradient.h"
#include "passes/pipeline.h"

using namespace fusor;
using namespace fusor::test;

namespace {

void expectGradientsMatchDifferences(ir::Module &module, const ir::SymbolValues &symbols, int64_t classes) {
  passes::PassOptions options;
  passes::PassContext context(options);
  ASSERT_FALSE(passes::runPasses(module, {std::string("gradient")}, context));
  ir::Function &forward = *module.function("forward"), &step = *module.function("train_step");
  auto inputs = inputsFor(forward, symbols, classes);
  ir::RefState state = initialState(module);
  auto result = evaluateOrFail(step, inputs, state);
  EXPECT_EQ(result.results[0].data, evaluateOrFail(forward, inputs, state).results[0].data);
  for (auto &entry : result.gradients) {
    llvm::StringRef name = entry.first();
    auto &gradient = entry.second;
    for (int64_t i = 0; i < gradient.elements(); ++i) {
      double &w = state[name].data[i], kept = w, h = 1e-5;
      w = kept + h;
      double above = evaluateOrFail(forward, inputs, state).results[0].data[0];
      w = kept - h;
      double below = evaluateOrFail(forward, inputs, state).results[0].data[0];
      w = kept;
      EXPECT_NEAR(gradient.data[i], (above - below) / (2 * h), 1e-8) << "of " << name.str() << "[" << i << "]";
    }
  }
}

TEST(Gradient, MlpEqualsDifferences) {
  auto module = mlp();
  expectGradientsMatchDifferences(*module, {{"B", 3}}, 5);
  EXPECT_EQ(module->function("train_step")->returns().size(), 5u); // loss, y, three gradients
}

TEST(Gradient, TransformerBlockEqualsDifferences) {
  auto module = transformer();
  expectGradientsMatchDifferences(*module, {{"B", 2}}, 7);
  EXPECT_EQ(module->function("train_step")->returns().size(), 1 + module->persistents().size());
}

TEST(Gradient, NamesAParamWithoutInfluence) {
  auto module = mlp();
  passes::PassOptions options;
  passes::PassContext context(options);
  ASSERT_FALSE(passes::runPasses(*module, {std::string("gradient")}, context));
  ASSERT_EQ(context.decisions().size(), 1u);
  EXPECT_EQ(context.decisions()[0].subject, "@unused");
  EXPECT_EQ(context.decisions()[0].kind, passes::Decision::Kind::refused);
}

// y = w * w read twice, and through mean, which has an expansion and no gradient rule.
TEST(Gradient, SharedParamAndExpandedOp) {
  ir::Module module("shared");
  module.addPersistent({ir::PersistentKind::param, "w", {ir::DType::f32, {4}}, {}, nullptr, {}, {}, {}, {}});
  ir::Function &f = module.addFunction("forward");
  ir::Builder b(f.block());
  ir::Value w = f.read("w");
  f.setReturns({{ir::ReturnKind::result, "", b.op("mean", {b.op("mul", {w, b.op("mul", {w, w})})})}});
  expectGradientsMatchDifferences(module, {}, 0);
}

// A bias on the scores, from a param: the rule of attention does not cover it, its expansion gives all four gradients.
TEST(Gradient, AttentionWithABiasIsExpanded) {
  ir::Module module("bias");
  const std::pair<const char *, ir::Shape> params[] = {
      {"q", {1, 3, 4}}, {"k", {1, 3, 4}}, {"v", {1, 3, 4}}, {"bias", {1, 2, 1, 3}}};
  ir::Function &f = module.addFunction("forward");
  llvm::SmallVector<ir::Value, 6> operands;
  for (const auto &[name, shape] : params) {
    module.addPersistent({ir::PersistentKind::param, name, {ir::DType::f64, shape}, {}, nullptr, {}, {}, {}, {}});
    if (operands.size() == 3) operands.append(2, ir::Value());
    operands.push_back(f.read(name));
  }
  ir::Builder b(f.block());
  ir::Value y = b.op("attention", operands, {{"heads", int64_t(2)}, {"causal", true}});
  f.setReturns({{ir::ReturnKind::result, "", b.op("mean", {b.op("mul", {y, y})})}});
  expectGradientsMatchDifferences(module, {}, 0);
  EXPECT_EQ(module.function("train_step")->returns().size(), 5u);
}

std::string errorOf(ir::Module &module) {
  passes::PassOptions options;
  passes::PassContext context(options);
  return llvm::toString(passes::runPasses(module, {std::string("gradient")}, context));
}

TEST(Gradient, RefusesALossThatIsNoScalar) {
  auto module = mlp();
  ir::Function &f = *module->function("forward");
  f.setReturns({f.returns()[1]}, {"mlp.fir", 9, 3});
  EXPECT_EQ(errorOf(*module), "mlp.fir:9:3: error: @forward must return a scalar float loss first, returns f32[B, 5]\n"
                              "hint: end it with cross_entropy or mean");
  EXPECT_EQ(module->function("train_step"), nullptr);
}

TEST(Gradient, RefusesAnOpWithoutARule) {
  ir::Module module("norm");
  module.addPersistent({ir::PersistentKind::param, "w", {ir::DType::f32, {4}}, {}, nullptr, {}, {}, {}, {}});
  ir::Function &f = module.addFunction("forward");
  ir::Builder b(f.block());
  b.setLocation({"norm.fir", 3, 5});
  f.setReturns({{ir::ReturnKind::result, "", b.op("global_norm", {f.read("w")})}});
  EXPECT_EQ(errorOf(module),
            "norm.fir:3:5: error: 'global_norm' has no gradient rule, and the loss depends on it: %0 = "
            "global_norm @w : f32[]\nhint: compute it from ops that have one, see `fusor ops`");
}

} // namespace
