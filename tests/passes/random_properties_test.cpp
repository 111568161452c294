// Passes on random functions: what a pass that only rewrites computes does not change, running it again changes
// nothing, and gradients are those of finite differences. A failing function is shrunk before it is printed.
#include "ir/random/random_graph.h"
#include "ir/verify/verify.h"
#include "passes/gradient/gradient.h"
#include "passes/pipeline.h"
#include "tests/support/tolerance.h"
#include <cmath>
#include <cstdlib>

using namespace fusor;
using namespace fusor::ir;
using namespace fusor::tests;

namespace {

/// 150, or as many as $FUSOR_RANDOM_SEEDS says.
uint64_t seeds() {
  const char *text = std::getenv("FUSOR_RANDOM_SEEDS");
  return text ? std::strtoull(text, nullptr, 10) : 150;
}

/// What is wrong after `pass` has run on a copy of `module`; "" where nothing is.
std::string problem(const ir::Module &module, const passes::Pass &pass, bool exact) {
  passes::PassOptions options;
  passes::PassContext context(options);
  auto after = module.clone();
  auto changed = pass.run(*after, context);
  if (!changed) return llvm::toString(changed.takeError());
  if (auto error = verify(*after)) return "invalid: " + llvm::toString(std::move(error));
  if (!*changed && after->str() != module.str()) return "says it changed nothing, and did";

  const Function &f = *module.function("random"), &g = *after->function("random");
  RandomInputs in = randomInputs(f, 1);
  auto want = evaluate(f, in.inputs, in.state, in.symbols), got = evaluate(g, in.inputs, in.state, in.symbols);
  if (!want || !got) {
    std::string text = "cannot be evaluated: ";
    if (!want) text += llvm::toString(want.takeError());
    if (!got) text += llvm::toString(got.takeError());
    return text;
  }
  if (want->results.size() != got->results.size()) return "another number of results";
  for (size_t i = 0; i < want->results.size(); ++i) {
    Tolerance tolerance = exact ? Tolerance() : toleranceFor(want->results[i].dtype, 64, 30);
    if (auto same = closeTo(got->results[i], want->results[i], tolerance); !same)
      return "result " + std::to_string(i) + ": " + same.message();
  }
  for (const auto &entry : want->updates)
    if (auto same = closeTo(got->updates[entry.first()], entry.second,
                            exact ? Tolerance() : toleranceFor(entry.second.dtype, 64, 30));
        !same)
      return "@" + entry.first().str() + ": " + same.message();

  auto again = after->clone();
  auto twice = pass.run(*again, context);
  if (!twice) return llvm::toString(twice.takeError());
  if (*twice || again->str() != after->str())
    return "running it again changes it:\n" + after->str() + "to\n" + again->str();
  return "";
}

void expectSound(llvm::StringRef name, bool exact, RandomGraphOptions options = {}) {
  const passes::Pass *pass = passes::findPass(name);
  ASSERT_NE(pass, nullptr);
  for (uint64_t seed = 0; seed < seeds(); ++seed) {
    auto module = randomModule(seed, options);
    std::string text = problem(*module, *pass, exact);
    if (text.empty()) continue;
    auto small = shrink(*module, [&](const ir::Module &m) { return !problem(m, *pass, exact).empty(); });
    FAIL() << "seed " << seed << ": " << problem(*small, *pass, exact) << "\n" << small->str();
  }
}

RandomGraphOptions everything() { return {.ops = 20, .fp8 = true, .random = true}; }

TEST(RandomProperties, SimplifyComputesTheSameAndIsIdempotent) { expectSound("simplify", false, everything()); }
TEST(RandomProperties, DeriveComputesTheSameAndIsIdempotent) { expectSound("derive", true, everything()); }
TEST(RandomProperties, LayoutComputesTheSameAndIsIdempotent) { expectSound("layout", true, everything()); }
TEST(RandomProperties, FusionComputesTheSameAndIsIdempotent) { expectSound("fusion", true, everything()); }

/// What is wrong with the gradients of `module`'s @random; "" where they match central differences of its first result.
std::string wrongGradient(const ir::Module &module) {
  auto copy = module.clone();
  Function &f = *copy->function("random");
  passes::PassOptions options;
  passes::PassContext context(options);
  f.setReturns({{ReturnKind::result, "", f.returns()[0].value}});
  auto forward = copy->clone();
  if (auto error = passes::addBackward(f, context)) return llvm::toString(std::move(error));
  if (auto error = verify(*copy)) return "invalid: " + llvm::toString(std::move(error));
  RandomInputs in = randomInputs(f, 1);
  auto result = evaluate(f, in.inputs, in.state, in.symbols);
  if (!result) return llvm::toString(result.takeError());
  auto loss = [&](const RefState &state) {
    return llvm::cantFail(evaluate(*forward->function("random"), in.inputs, state, in.symbols)).results[0].data[0];
  };
  constexpr double h = 1e-6;
  for (auto &gradient : result->gradients) {
    RefTensor &w = in.state[gradient.first()];
    for (int64_t i = 0; i < w.elements(); i += 1 + w.elements() / 5) {
      double at = w.data[i];
      w.data[i] = at + h;
      double up = loss(in.state);
      w.data[i] = at - h;
      double down = loss(in.state), difference = (up - down) / (2 * h), rule = gradient.second.data[i];
      w.data[i] = at;
      if (std::fabs(rule - difference) > 1e-5 * (1 + std::fabs(difference)))
        return "grad @" + gradient.first().str() + "[" + std::to_string(i) + "] is " + std::to_string(rule) +
               ", finite differences give " + std::to_string(difference);
    }
  }
  return "";
}

TEST(RandomProperties, GradientsMatchFiniteDifferences) {
  unsigned withParams = 0;
  for (uint64_t seed = 0; seed < seeds(); ++seed) {
    RandomGraphOptions options{.ops = 12, .narrow = false, .random = true, .discontinuous = false, .loss = true};
    auto module = randomModule(seed, options);
    withParams += !module->persistents().empty();
    std::string text = wrongGradient(*module);
    if (text.empty()) continue;
    auto small = shrink(*module, [&](const ir::Module &m) {
      auto returns = m.function("random")->returns();
      return returns[0].value.type().str() == "f32[]" && !wrongGradient(m).empty();
    });
    FAIL() << "seed " << seed << ": " << wrongGradient(*small) << "\n" << small->str();
  }
  EXPECT_GT(withParams, seeds() / 2);
}

} // namespace
