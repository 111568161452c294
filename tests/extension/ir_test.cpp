// The made-up op in ir/ and frontend/text: parsed, printed, verified, inferred and documented from its entry alone.
// Values and gradients are checked by the property tests of tests/numerics, which this binary runs on it.
#include "frontend/text/parser.h"
#include "ir/ops/docs.h"
#include "ir/ops/op_def.h"
#include "ir/verify/verify.h"
#include "gtest/gtest.h"

using namespace fusor;
using namespace fusor::ir;

namespace {

constexpr llvm::StringLiteral kText = R"(dim B in 1..64

func @f(%a: bf16[B, 4], %b: bf16[4]) -> bf16[B, 4] {
  %y = made_up %a, %b {strength = 3.0} : bf16[B, 4]
  return %y
}
)";

TEST(MadeUpOp, IsInTheTable) {
  ASSERT_NE(findOp("made_up"), nullptr);
  EXPECT_EQ(findOp("made_up")->lowering, Lowering::pointwise);
}

TEST(MadeUpOp, IsParsedVerifiedAndPrinted) {
  auto module = frontend::parseModule(kText, "made_up.fir");
  ASSERT_TRUE(static_cast<bool>(module)) << llvm::toString(module.takeError());
  EXPECT_EQ((*module)->str(), kText.str());
  EXPECT_EQ((*module)->clone()->str(), kText.str());
  auto error = verify(**module);
  EXPECT_FALSE(static_cast<bool>(error)) << llvm::toString(std::move(error));
}

TEST(MadeUpOp, IsRefusedWhereItDoesNotFit) {
  auto module = frontend::parseModule(R"(func @f(%a: f32[4]) -> f32[4] {
  %y = made_up %a, %a {strength = 300.0} : f32[4]
  return %y
})",
                                      "made_up.fir");
  ASSERT_FALSE(static_cast<bool>(module));
  std::string text = llvm::toString(module.takeError());
  EXPECT_NE(text.find("'made_up' attribute 'strength' must be in 0.0..100.0, is 300.0"), std::string::npos) << text;
}

TEST(MadeUpOp, IsDocumented) {
  EXPECT_NE(opsMarkdown().find("a * sin(b) where b > 0"), std::string::npos);
  EXPECT_NE(opsText().find("made_up"), std::string::npos);
}

} // namespace
