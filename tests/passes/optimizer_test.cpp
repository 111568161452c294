// passes/optimizer: against AdamW written out by hand, and accumulation against the big batch.
#include "models.h"
#include "passes/optimizer/optimizer.h"
#include "passes/pipeline.h"
#include <cmath>
#include <limits>

using namespace fusor;
using namespace fusor::test;

namespace {

std::unique_ptr<ir::Module> trained(const passes::PassOptions &options) {
  auto module = mlp();
  passes::PassContext context(options);
  EXPECT_SUCCESS(passes::runPasses(*module, {std::string("gradient"), std::string("optimizer")}, context));
  return module;
}

ir::RefState gradientsOf(const std::vector<ir::RefTensor> &inputs, const ir::RefState &state) {
  auto module = mlp();
  passes::PassOptions options;
  passes::PassContext context(options);
  EXPECT_SUCCESS(passes::runPasses(*module, {std::string("gradient")}, context));
  return evaluateOrFail(*module->function("train_step"), inputs, state).gradients;
}

void apply(ir::RefState &state, const ir::RefState &updates) {
  for (auto &entry : updates) state[entry.first()] = entry.second;
}

TEST(Optimizer, TwoStepsEqualTheFormula) {
  passes::PassOptions options;
  options.optimizer = {
      .lr = 0.05, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .weightDecay = 0.1, .noDecay = "bias$", .clipNorm = 0.3};
  auto module = trained(options);
  ir::Function &step = *module->function("train_step");
  auto inputs = inputsFor(step, {{"B", 4}}, 5);
  ir::RefState state = initialState(*module), expected = state;
  EXPECT_NEAR(state["optimizer.lr"].data[0], 0.05, 1e-9);
  for (int t = 1; t <= 2; ++t) {
    ir::RefState gradients = gradientsOf(inputs, expected);
    double squares = 0;
    for (auto &entry : gradients)
      for (double x : entry.second.data) squares += x * x;
    ASSERT_GT(std::sqrt(squares), 0.3) << "the clip must act for this test to mean anything";
    double scale = std::min(1.0, 0.3 / (std::sqrt(squares) + 1e-6));
    for (auto &entry : gradients) {
      llvm::StringRef name = entry.first();
      auto &gradient = entry.second;
      double decay = name == "fc1.bias" ? 0 : 0.1;
      for (int64_t i = 0; i < gradient.elements(); ++i) {
        double &w = expected[name].data[i], &m = expected[("adamw.m." + name).str()].data[i],
               &v = expected[("adamw.v." + name).str()].data[i], g = gradient.data[i] * scale;
        m = 0.8 * m + 0.2 * g, v = 0.95 * v + 0.05 * g * g;
        w = w * (1 - 0.05 * decay) -
            0.05 * (m / (1 - std::pow(0.8, t))) / (std::sqrt(v / (1 - std::pow(0.95, t))) + 1e-6);
      }
    }
    auto result = evaluateOrFail(step, inputs, state);
    EXPECT_EQ(result.updates.count("optimizer.lr"), 0u); // the host's
    EXPECT_EQ(result.updates.count("unused"), 0u);
    apply(state, result.updates);
    EXPECT_EQ(state["adamw.step"].data[0], t);
    for (auto &entry : gradients)
      for (std::string of :
           {entry.first().str(), ("adamw.m." + entry.first()).str(), ("adamw.v." + entry.first()).str()})
        for (int64_t i = 0; i < entry.second.elements(); ++i)
          EXPECT_NEAR(state[of].data[i], expected[of].data[i], 1e-8) << of << "[" << i << "] in step " << t;
  }
}

// Three micro-batches of 2 rows equal one batch of 6.
TEST(Optimizer, AccumulationEqualsTheBigBatch) {
  passes::PassOptions one, three;
  three.accumulate = 3;
  auto whole = trained(one), parts = trained(three);
  auto inputs = inputsFor(*whole->function("train_step"), {{"B", 6}}, 5);
  ir::RefState wholeState = initialState(*whole), state = initialState(*parts);
  for (int step = 0; step < 2; ++step) {
    auto big = evaluateOrFail(*whole->function("train_step"), inputs, wholeState);
    apply(wholeState, big.updates);
    double loss = 0;
    for (int part = 0; part < 3; ++part) {
      std::vector<ir::RefTensor> rows = inputs;
      for (ir::RefTensor &t : rows) {
        int64_t row = t.elements() / 6;
        t.data = std::vector<double>(t.data.begin() + part * 2 * row, t.data.begin() + (part + 1) * 2 * row);
        t.shape[0] = 2;
      }
      auto result = evaluateOrFail(*parts->function(part < 2 ? "accumulate" : "train_step"), rows, state);
      if (part < 2) {
        EXPECT_EQ(result.updates.size(), 3u) << "@accumulate writes its sums only";
      }
      apply(state, result.updates);
      loss += result.results[0].data[0] / 3;
    }
    EXPECT_NEAR(loss, big.results[0].data[0], 1e-12);
    for (auto &entry : wholeState)
      for (int64_t i = 0; i < entry.second.elements(); ++i)
        EXPECT_NEAR(state[entry.first()].data[i], entry.second.data[i], 1e-9) << entry.first().str() << "[" << i << "]";
    for (double x : state["accum.fc1.weight"].data) EXPECT_EQ(x, 0);
  }
}

// Scaling by S and dividing by it changes nothing; the clip sees the true norm.
TEST(LossScale, CancelsOut) {
  passes::PassOptions plain, scaled;
  plain.optimizer.clipNorm = scaled.optimizer.clipNorm = 0.3;
  scaled.lossScale = 1024;
  auto a = trained(plain), b = trained(scaled);
  auto inputs = inputsFor(*a->function("train_step"), {{"B", 4}}, 5);
  auto expected = evaluateOrFail(*a->function("train_step"), inputs, initialState(*a)).updates;
  auto found = evaluateOrFail(*b->function("train_step"), inputs, initialState(*b)).updates;
  EXPECT_EQ(found["optimizer.loss_scale"].data[0], 1024);
  EXPECT_EQ(found["optimizer.good_steps"].data[0], 1);
  for (auto &entry : expected)
    for (int64_t i = 0; i < entry.second.elements(); ++i)
      EXPECT_NEAR(found[entry.first()].data[i], entry.second.data[i], 1e-12) << entry.first().str();
}

TEST(LossScale, SkipsAStepThatOverflowed) {
  passes::PassOptions options;
  options.lossScale = 1024;
  auto module = trained(options);
  auto inputs = inputsFor(*module->function("train_step"), {{"B", 4}}, 5);
  inputs[0].data[3] = std::numeric_limits<double>::infinity();
  ir::RefState state = initialState(*module);
  state["optimizer.good_steps"].data[0] = 7;
  auto updates = evaluateOrFail(*module->function("train_step"), inputs, state).updates;
  EXPECT_EQ(updates["optimizer.loss_scale"].data[0], 512);
  EXPECT_EQ(updates["optimizer.good_steps"].data[0], 0);
  for (auto &entry : updates)
    if (!entry.first().startswith("optimizer.")) {
      EXPECT_EQ(entry.second.data, state[entry.first()].data) << entry.first().str() << " must stay";
    }
}

TEST(LossScale, DoublesAfterManyGoodSteps) {
  passes::PassOptions options;
  options.lossScale = 1024;
  auto module = trained(options);
  auto inputs = inputsFor(*module->function("train_step"), {{"B", 4}}, 5);
  ir::RefState state = initialState(*module);
  state["optimizer.good_steps"].data[0] = 1999;
  auto updates = evaluateOrFail(*module->function("train_step"), inputs, state).updates;
  EXPECT_EQ(updates["optimizer.loss_scale"].data[0], 2048);
  EXPECT_EQ(updates["optimizer.good_steps"].data[0], 0);
}

// The largest error of fc1's gradient in f16, relative to its largest element, where gradients are near 1e-7.
double errorInF16(std::optional<double> lossScale) {
  passes::PassOptions options;
  options.precision = ir::DType::f16;
  options.lossScale = lossScale;
  options.wideHeadBelow = 0;
  auto module = mlp();
  passes::PassContext context(options);
  EXPECT_SUCCESS(passes::runPasses(
      *module, {std::string("precision"), std::string("gradient"), std::string("optimizer")}, context));
  auto inputs = inputsFor(*module->function("train_step"), {{"B", 4}}, 5);
  ir::RefState state = initialState(*module);
  for (double &w : state["fc2.weight"].data) w *= 1e-6;
  auto updates = evaluateOrFail(*module->function("train_step"), inputs, state).updates;
  auto exact = gradientsOf(inputs, state);
  double error = 0, largest = 0;
  for (int64_t i = 0; i < exact["fc1.weight"].elements(); ++i) {
    double gradient = exact["fc1.weight"].data[i]; // m = (1 - beta1) * gradient after the first step
    error = std::max(error, std::abs(updates["adamw.m.fc1.weight"].data[i] / 0.1 - gradient));
    largest = std::max(largest, std::abs(gradient));
  }
  return error / largest;
}

TEST(LossScale, IsOnInF16AndKeepsSmallGradients) {
  EXPECT_LT(errorInF16(std::nullopt), 0.05);
  EXPECT_GT(errorInF16(1.0), 0.1) << "without a scale f16 flushes them, else this test means nothing";
}

TEST(Optimizer, RefusesABadRegularExpression) {
  passes::PassOptions options;
  options.optimizer.noDecay = "(";
  auto module = mlp();
  passes::PassContext context(options);
  std::string text =
      llvm::toString(passes::runPasses(*module, {std::string("gradient"), std::string("optimizer")}, context));
  EXPECT_EQ(text.rfind("error: '(' is no regular expression: ", 0), 0u) << text;
}

} // namespace
