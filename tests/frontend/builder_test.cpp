// The C++ builder: what it builds, and what it says about mistakes, with the line they were made on.
#include "frontend/builder/builder.h"
#include "frontend/builder/graph_state.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"

namespace {
using namespace fusor;

std::string built(const Builder &b) {
  auto module = frontend::finish(b);
  return module ? (*module)->str() : llvm::toString(module.takeError());
}
/// "FILE:LINE: " of a line of this file.
std::string at(unsigned line) { return std::string(__FILE__) + ":" + std::to_string(line) + ": error: "; }

TEST(Builder, OperatorsAndFunctionsBuildOps) {
  Builder b("mlp");
  Value x = b.input("x", f32, {dim("B", 1, 64), 16});
  Value w = b.param("fc.weight", f32, {8, 16}, Init::normal(0.5));
  b.output(2.0 * gelu(linear(x, w)) + 1, "y");
  ASSERT_FALSE(b.error()) << b.error().text();
  EXPECT_EQ(built(b), R"(module @mlp

dim B in 1..64
param @fc.weight : f32[8, 16] {init = normal(0.5)}

func @forward(%x: f32[B, 16]) -> f32[B, 8] {
  %0 = linear %x, @fc.weight  : f32[B, 8]
  %1 = gelu %0                : f32[B, 8]
  %2 = constant {value = 2.0} : f32[]
  %3 = mul %2, %1             : f32[B, 8]
  %4 = constant {value = 1.0} : f32[]
  %y = add %3, %4             : f32[B, 8]
  return %y
}
)");
}

TEST(Builder, AnOperatorsErrorNamesItsLine) {
  Builder b("m");
  Value x = b.input("x", f32, {dim("B", 1, 8), 16});
  Value w = b.param("w", f32, {8}, {});
  Value sum = x + w;
  unsigned line = __LINE__ - 1;
  EXPECT_TRUE(sum.empty());
  EXPECT_EQ(b.error().text(), at(line) + "'add' operands must broadcast to one shape: a is f32[B, 16], b is f32[8]");
  EXPECT_EQ(b.error().exitCode(), 1);
}

TEST(Builder, OneMistakeIsOneMessageAndAllMistakesArrive) {
  Builder b("m");
  Value x = b.input("x", f32, {4, 16});
  Value bad = transpose(x, {0, 0});
  unsigned first = __LINE__ - 1;
  b.output(gelu(bad) * 2.0 + x);
  Value worse = reshape(x, {5});
  unsigned second = __LINE__ - 1;
  b.output(worse);
  EXPECT_EQ(b.error().text(), at(first) + "'transpose' perm must be a permutation of 0..1, is [0, 0]\n" + at(second) +
                                  "'reshape' must keep the number of elements: f32[4, 16] has 64, [5] has 5");
}

TEST(Builder, ValuesOfOtherBuildersAndFunctionsAreRefused) {
  Builder a("a"), b("b");
  Value x = a.input("x", f32, {4}), y = b.input("y", f32, {4});
  EXPECT_TRUE((x + y).empty());
  EXPECT_NE(a.error().text().find("operand 1 of 'add' belongs to another Builder"), std::string::npos);
  b.function("second");
  EXPECT_TRUE(gelu(y).empty());
  EXPECT_NE(b.error().text().find("operand 0 of 'gelu' belongs to another function than @second"), std::string::npos);
}

TEST(Builder, NamesAreDeclaredOnceAFunction) {
  Builder b("m");
  b.param("w", f32, {4}, {});
  b.function("second");
  b.param("w", f32, {4}, {});
  EXPECT_FALSE(b.error()) << b.error().text();
  b.param("w", f32, {4}, {});
  EXPECT_NE(b.error().text().find("'w' is declared twice in @second"), std::string::npos);
  b.function("third");
  b.param("w", f32, {5}, {});
  EXPECT_NE(b.error().text().find("'w' is param f32[4] at"), std::string::npos) << b.error().text();
}

TEST(Builder, DimsNeedOneRange) {
  Builder b("m");
  b.input("x", f32, {dim("B")});
  EXPECT_NE(b.error().text().find("dim \"B\" has no range yet"), std::string::npos);
  b.input("y", f32, {dim("C", 1, 4)});
  b.input("z", f32, {dim("C", 1, 8)});
  EXPECT_NE(b.error().text().find("dim \"C\" has range 1..8 here and 1..4 before"), std::string::npos);
  b.input("u", f32, {dim("not a name", 1, 8)});
  EXPECT_NE(b.error().text().find("'not a name' cannot be a dim's symbol"), std::string::npos);
}

TEST(Builder, UnknownOpsAndAttributes) {
  Builder b("m");
  Value x = b.input("x", f32, {4});
  EXPECT_TRUE(b.op("geluu", {x}).empty());
  EXPECT_TRUE(b.op("return", {x}).empty());
  EXPECT_TRUE(b.op("gelu", {x}, {{"form", "sigmoid"}}).empty());
  std::string text = b.error().text();
  EXPECT_NE(text.find("there is no op 'geluu'; `fusor ops` lists them"), std::string::npos);
  EXPECT_NE(text.find("'return' is made by the builder"), std::string::npos);
  EXPECT_NE(text.find("attribute 'form' must be one of tanh, erf"), std::string::npos);
}

TEST(Builder, StatesAreUpdatedOnceWithTheirType) {
  Builder b("m");
  Value n = b.state("n", i32, {}), w = b.param("w", f32, {}, {});
  b.output(w);
  b.update("n", n + 1);
  ASSERT_FALSE(b.error());
  EXPECT_NE(built(b).find("return @w, @n = %"), std::string::npos) << built(b);
  b.update("n", n + 2);
  b.update("w", w);
  EXPECT_NE(b.error().text().find("state 'n' is updated twice in @forward"), std::string::npos);
  EXPECT_NE(b.error().text().find("'w' is a param: only a state can be updated"), std::string::npos);
}

TEST(Builder, AValueOfNoBuilderIsReportedWhereItIsReturned) {
  Builder b("m");
  b.output(gelu(Value()) + 1.0);
  EXPECT_NE(b.error().text().find("the output is an empty Value"), std::string::npos);
}

TEST(Builder, FinishingLeavesTheFunctionOpen) {
  Builder b("m");
  Value x = b.input("x", f32, {4});
  b.output(x);
  std::string once = built(b);
  b.output(gelu(x));
  EXPECT_NE(built(b), once);
}

} // namespace
