// What an op reads and writes, counted from its IR.
#include "ir/graph/builder.h"
#include "ir/ops/traffic.h"
#include "gtest/gtest.h"

namespace {
using namespace fusor::ir;

struct TrafficTest : testing::Test {
  Module module;
  Block &block = module.addFunction("f").block();
  Builder b{block};
  Dim rows = Dim::symbol("B");
  SymbolValues symbols = [] {
    SymbolValues values;
    values["B"] = 10;
    return values;
  }();
  Value argument(DType type, Shape shape) { return block.addArgument({type, std::move(shape)}, "x"); }
  int64_t moved(Value v) { return movedBytes(*v.op(), symbols); }
};

TEST_F(TrafficTest, OperandsAndResultsCountOnce) {
  Value x = argument(DType::f32, {rows, 8}), y = argument(DType::bf16, {rows, 8});
  EXPECT_EQ(moved(b.op("mul", {x, x})), 2 * 320);
  EXPECT_EQ(moved(b.op("add", {x, b.cast(y, DType::f32)})), 3 * 320);
  EXPECT_EQ(moved(b.cast(y, DType::f32)), 160 + 320);
}

TEST_F(TrafficTest, OfATableTheRowsThatAreLookedUp) {
  Value table = argument(DType::f32, {30522, 8}), small = argument(DType::f32, {2, 8});
  Value indices = argument(DType::i32, {rows});
  EXPECT_EQ(moved(b.op("gather", {table, indices})), 320 + 40 + 320);
  EXPECT_EQ(moved(b.op("gather", {small, indices})), 64 + 40 + 320) << "no more than there is";
}

TEST_F(TrafficTest, OfASliceAndASplitThePart) {
  Value x = argument(DType::f32, {rows, 128, 8});
  Value first = b.op("slice", {x}, {{"start", Shape{0, 0, 0}}, {"size", Shape{rows, 1, 8}}});
  EXPECT_EQ(moved(first), 320 + 320);
  Op &split = *b.op("split", {argument(DType::f32, {rows, 24})}, {{"sizes", Shape{8, 16}}}).op();
  b.op("neg", {split.result(0)});
  EXPECT_EQ(bytesRead(split, split.operand(0u)).evaluate(symbols).value_or(0), 320);
}

TEST_F(TrafficTest, AnArgumentIsReadWholeAsSoonAsOneUserDoes) {
  Value x = argument(DType::f32, {rows, 8});
  b.op("slice", {x}, {{"start", Shape{0, 0}}, {"size", Shape{1, 8}}});
  EXPECT_EQ(bytesRead(x).evaluate(symbols).value_or(0), 32);
  b.op("slice", {x}, {{"start", Shape{1, 0}}, {"size", Shape{2, 8}}});
  EXPECT_EQ(bytesRead(x).evaluate(symbols).value_or(0), 96);
  b.op("exp", {x});
  EXPECT_EQ(bytesRead(x).evaluate(symbols).value_or(0), 320);
}

} // namespace
