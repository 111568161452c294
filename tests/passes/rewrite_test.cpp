// passes/rewrite: patterns, refusals and near misses, and that rules come to rest.
#include "frontend/text/parser.h"
#include "ir/ops/op_def.h"
#include "passes/rewrite/rule.h"
#include "gtest/gtest.h"

using namespace fusor;
using namespace fusor::passes;

namespace {

std::unique_ptr<ir::Module> parse(const char *text) {
  auto module = frontend::parseModule(text, "test.fir");
  if (!module) {
    ADD_FAILURE() << llvm::toString(module.takeError());
    return nullptr;
  }
  return std::move(*module);
}

Rule foldBias() {
  const Pattern x = any("x"), w = any("w"), b = any("b");
  return {.name = "fold-bias",
          .match = op("add", {once(op("linear", {x, w})), b}),
          .when =
              [](const Match &m) {
                return m.require(m["b"].rank() == 1, "bias must be a vector, is {0}", m["b"].type().str());
              },
          .rewrite = [](const Match &m, ir::Builder &at) -> Replacement {
            return at.op("linear", {m["x"], m["w"], m["b"]});
          },
          .explained = true};
}

struct Outcome {
  bool changed;
  std::string text;
  std::vector<Decision> decisions;
};
Outcome apply(const char *text, llvm::ArrayRef<Rule> rules, PassOptions options = {}) {
  options.explain = true;
  auto module = parse(text);
  PassContext context(options);
  bool changed = rewriteToFixpoint(*module->functions()[0], rules, context);
  return {changed, module->str(), context.decisions().vec()};
}

TEST(Rules, MatchBothOrdersOfACommutativeOp) {
  auto outcome = apply(R"(
func @forward(%x: f32[4, 8], %w: f32[2, 8], %b: f32[2]) -> f32[4, 2] {
  %p = linear %x, %w : f32[4, 2]
  %y = add %b, %p    : f32[4, 2]
  return %y
})",
                       foldBias());
  EXPECT_TRUE(outcome.changed);
  EXPECT_EQ(outcome.text, "func @forward(%x: f32[4, 8], %w: f32[2, 8], %b: f32[2]) -> f32[4, 2] {\n"
                          "  %y = linear %x, %w, bias = %b : f32[4, 2]\n"
                          "  return %y\n"
                          "}\n");
  ASSERT_EQ(outcome.decisions.size(), 1u);
  EXPECT_EQ(outcome.decisions[0].kind, Decision::Kind::taken);
  EXPECT_EQ(outcome.decisions[0].subject, "%y = add %b, %p : f32[4, 2]");
}

TEST(Rules, RefuseWithAReason) {
  auto outcome = apply(R"(
func @forward(%x: f32[4, 8], %w: f32[2, 8], %b: f32[4, 2]) -> f32[4, 2] {
  %p = linear %x, %w : f32[4, 2]
  %y = add %b, %p    : f32[4, 2]
  return %y
})",
                       foldBias());
  EXPECT_FALSE(outcome.changed);
  ASSERT_EQ(outcome.decisions.size(), 1u);
  EXPECT_EQ(outcome.decisions[0].kind, Decision::Kind::refused);
  EXPECT_EQ(outcome.decisions[0].reason, "bias must be a vector, is f32[4, 2]");
  EXPECT_EQ(outcome.decisions[0].location.str(), "test.fir:4:8");
}

TEST(Rules, OnceKeepsASharedProduct) {
  auto outcome = apply(R"(
func @forward(%x: f32[4, 8], %w: f32[2, 8], %b: f32[2]) -> f32[4, 2], f32[4, 2] {
  %p = linear %x, %w : f32[4, 2]
  %y = add %p, %b    : f32[4, 2]
  return %y, %p
})",
                       foldBias());
  EXPECT_FALSE(outcome.changed);
}

TEST(Rules, NameTheNearestMiss) {
  const Pattern x = any("x");
  Rule rule{.name = "lift-gelu",
            .match = op("mul", {op("add", {op("tanh", {x}), number(1)}), number(0.5)}),
            .rewrite = [](const Match &m, ir::Builder &) -> Replacement { return m["x"]; },
            .explained = true};
  auto outcome = apply(R"(
func @forward(%x: f32[4]) -> f32[4] {
  %h = constant {value = 0.5} : f32[]
  %o = constant {value = 1.0} : f32[]
  %s = sin %x    : f32[4]
  %a = add %s, %o : f32[4]
  %y = mul %a, %h : f32[4]
  return %y
})",
                       rule);
  EXPECT_FALSE(outcome.changed);
  ASSERT_EQ(outcome.decisions.size(), 1u);
  EXPECT_EQ(outcome.decisions[0].kind, Decision::Kind::nearMiss);
  EXPECT_EQ(outcome.decisions[0].reason, "%s is made by 'sin', by tanh is wanted");
}

// x of `mul` is first taken to be %a, which does not fit the `neg`; the order is tried the other way round.
TEST(Rules, TakeBackAChoiceMadeInside) {
  const Pattern x = any("x"), y = any("y");
  Rule rule{.name = "test",
            .match = op("sub", {op("mul", {x, y}), op("neg", {x})}),
            .rewrite = [](const Match &m, ir::Builder &) -> Replacement { return m["y"]; }};
  auto outcome = apply(R"(
func @forward(%a: f32[4], %b: f32[4]) -> f32[4] {
  %m = mul %a, %b : f32[4]
  %n = neg %b     : f32[4]
  %y = sub %m, %n : f32[4]
  return %y
})",
                       rule);
  EXPECT_TRUE(outcome.changed);
  EXPECT_NE(outcome.text.find("return %a"), std::string::npos) << outcome.text;
}

TEST(Rules, FuelAndDisabledRulesStopThem) {
  const char *text = R"(
func @forward(%x: f32[4, 8], %w: f32[2, 8], %b: f32[2]) -> f32[4, 2] {
  %p = linear %x, %w : f32[4, 2]
  %y = add %b, %p    : f32[4, 2]
  return %y
})";
  PassOptions noFuel, off;
  noFuel.fuel = 0;
  off.disabledRules.insert("fold-bias");
  EXPECT_FALSE(apply(text, foldBias(), noFuel).changed);
  EXPECT_FALSE(apply(text, foldBias(), off).changed);
}

TEST(RulesDeathTest, ThatNeverRestAreNamed) {
  const Pattern x = any("x"), y = any("y");
  Rule swap{.name = "swap", .match = op("sub", {x, y}), .rewrite = [](const Match &m, ir::Builder &at) -> Replacement {
              return at.op("sub", {m["y"], m["x"]});
            }};
  const char *text = "func @forward(%x: f32[4], %y: f32[4]) -> f32[4] {\n  %z = sub %x, %y : f32[4]\n  return %z\n}\n";
  EXPECT_EXIT(apply(text, swap), testing::ExitedWithCode(70), "do not come to rest in @forward; .*'swap'");
}

TEST(RulesDeathTest, ThatChangeATypeAreNamed) {
  const Pattern x = any("x");
  Rule wrong{.name = "wrong", .match = op("sum", {x}), .rewrite = [](const Match &m, ir::Builder &) -> Replacement {
               return m["x"];
             }};
  const char *text = "func @forward(%x: f32[4]) -> f32[] {\n  %z = sum %x : f32[]\n  return %z\n}\n";
  EXPECT_EXIT(apply(text, wrong), testing::ExitedWithCode(70), "rule 'wrong' gives f32\\[4\\] for %z = sum %x");
}

} // namespace
