// Operators with hand-computed results: what the importer writes is evaluated on the reference, or run on the CPU.
#include "frontend/api/compile_module.h"
#include "tests/onnx/evaluate.h"
#include "gtest/gtest.h"

namespace fusor::tests {
namespace {

TEST(OnnxSizes, ACastOfASizeStaysASize) {
  ModelBuilder m;
  m.input("x", {"B", "T", "8"}).output("y").ints("one", {1}).ints("two", {2}).ints("rest", {-1, 8});
  m.node("Shape", {"x"}, {"s"});
  m.node("Gather", {"s", "one"}, {"t"});
  m.node("Mul", {"t", "two"}, {"t2"});
  ModelBuilder::attribute(m.node("Cast", {"t2"}, {"c"}), "to", kInt64);
  ModelBuilder::attribute(m.node("Concat", {"x", "x"}, {"xx"}), "axis", 1);
  ModelBuilder::attribute(m.node("Concat", {"c", "rest"}, {"to"}), "axis", 0);
  m.node("Reshape", {"xx", "to"}, {"y"});
  EXPECT_PART(m.imported(), "reshape %xx {shape = [2*T, B, 8]}");
}

// Rows P..P+S of a table of 8; where the sizes do not fit it, the run says so and reads nothing.
TEST(OnnxSizes, ASliceOfTwoSizesIsCheckedWhenItRuns) {
  ModelBuilder m;
  m.input("table", {"8"}).input("past", {"P"}).input("now", {"S"}).output("y").ints("axis", {0});
  m.node("Shape", {"past"}, {"p"});
  m.node("Shape", {"now"}, {"s"});
  m.node("Add", {"p", "s"}, {"end"});
  m.node("Slice", {"table", "p", "end", "axis"}, {"y"});
  auto imported = onnx::importBytes(m.bytes(), "m.onnx", "");
  ASSERT_TRUE(static_cast<bool>(imported)) << llvm::toString(imported.takeError());
  auto device = frontend::chooseDevice("cpu");
  ASSERT_TRUE(static_cast<bool>(device));
  frontend::DeviceSettings settings;
  settings.device = "cpu", settings.threads = 1;
  auto compiled = frontend::compileModule(std::move(imported->module), *device, frontend::CompileRequest(settings));
  ASSERT_TRUE(static_cast<bool>(compiled)) << llvm::toString(compiled.takeError());
  runtime::Program &program = *compiled->program;
  auto run = [&](int64_t past, int64_t now) {
    std::vector<float> table{0, 1, 2, 3, 4, 5, 6, 7}, rest(16), y(now);
    using ir::DType;
    std::string error = llvm::toString(program.run(
        "forward",
        {{DType::f32, {8}, table.data()}, {DType::f32, {past}, rest.data()}, {DType::f32, {now}, rest.data()}},
        {{DType::f32, {now}, y.data()}}));
    return error.empty() ? std::to_string(y.front()) + ".." + std::to_string(y.back()) : error;
  };
  EXPECT_PART(run(3, 5), "3.000000..7.000000");
  EXPECT_PART(run(6, 4), "reads elements 6 to 9 of a dim of 8");
}

onnx::Node &multiHead(ModelBuilder &m, std::vector<std::string> inputs) {
  m.import("com.microsoft", 1);
  onnx::Node &node = m.node("MultiHeadAttention", std::move(inputs), {"y"});
  node.set_domain("com.microsoft");
  ModelBuilder::attribute(node, "num_heads", 1);
  return node;
}

TEST(OnnxMicrosoft, AMaskedKeyIsNotSeen) {
  ModelBuilder m;
  m.input("q", {"1", "1", "2"}).input("k", {"1", "2", "2"}).input("v", {"1", "2", "2"}).output("y");
  m.input("mask", {"1", "2"}, kInt32);
  multiHead(m, {"q", "k", "v", "", "mask"});
  using ir::DType;
  EXPECT_EQ(evaluated(m, {tensor(DType::f32, {1, 1, 2}, {1, 1}), tensor(DType::f32, {1, 2, 2}, {1, 2, 3, 4}),
                          tensor(DType::f32, {1, 2, 2}, {5, 6, 7, 8}), tensor(DType::i32, {1, 2}, {1, 0})}),
            "5.000 6.000 ");
}

TEST(OnnxMicrosoft, ACausalQuerySeesWhatCameBefore) {
  ModelBuilder m;
  m.input("x", {"1", "2", "2"}).output("y");
  ModelBuilder::attribute(multiHead(m, {"x", "x", "x"}), "unidirectional", 1);
  std::string text = evaluated(m, {tensor(ir::DType::f32, {1, 2, 2}, {0, 0, 0, 4})});
  EXPECT_EQ(text, "0.000 0.000 0.000 4.000 ");
}

// The mask has a name of its own for P + S.
TEST(OnnxMicrosoft, AMaskIsAsLongAsThePastAndTheInput) {
  ModelBuilder m;
  m.input("x", {"1", "S", "2"}).input("mask", {"1", "total"}, kInt32).output("y");
  m.input("k", {"1", "1", "P", "2"}).input("v", {"1", "1", "P", "2"});
  multiHead(m, {"x", "x", "x", "", "mask", "", "k", "v"});
  std::string text = m.imported();
  EXPECT_PART(text, "%mask: i32[1, P+S]");
  EXPECT_EQ(text.find("total"), std::string::npos) << text;
}

TEST(OnnxMicrosoft, WhatIsNotReadIsNamed) {
  ModelBuilder m;
  m.input("x", {"1", "2", "2"}).output("y").input("n", {"1"}, kInt32);
  multiHead(m, {"x", "x", "x", "", "", "", "", "", "n"});
  EXPECT_PART(m.imported(), "a cache that is shared with the past");
  ModelBuilder n;
  n.input("x", {"1", "2", "2"}).output("y").input("mask", {"5"}, kInt32);
  multiHead(n, {"x", "x", "x", "", "mask"});
  EXPECT_PART(n.imported(), "a key mask i32[5]");
}

TEST(OnnxWindows, AConvolutionOfGroupsWithPadsAndStrides) {
  ModelBuilder m;
  m.input("x", {"1", "2", "3"}).input("w", {"2", "1", "2"}).input("b", {"2"}).output("y");
  onnx::Node &node = m.node("Conv", {"x", "w", "b"}, {"y"});
  ModelBuilder::attribute(node, "group", 2);
  ModelBuilder::listAttribute(node, "pads", {1, 0});
  ModelBuilder::listAttribute(node, "strides", {2});
  // channel 0: [0 1 2 3] by [1 1] in steps of 2; channel 1: [0 4 5 6] by [1 -1]
  EXPECT_EQ(evaluated(m, {tensor(ir::DType::f32, {1, 2, 3}, {1, 2, 3, 4, 5, 6}),
                          tensor(ir::DType::f32, {2, 1, 2}, {1, 1, 1, -1}), tensor(ir::DType::f32, {2}, {10, 0})}),
            "11.000 15.000 -4.000 -1.000 ");
}

TEST(OnnxWindows, PoolsCountWhatIsThere) {
  ir::RefTensor x = tensor(ir::DType::f32, {1, 1, 3}, {-1, -2, -6});
  for (auto [op, ceil, expected] : {std::tuple{"MaxPool", 0, "-1.000 -2.000 "}, {"AveragePool", 0, "-1.000 -4.000 "}}) {
    ModelBuilder m;
    m.input("x", {"1", "1", "3"}).output("y");
    onnx::Node &node = m.node(op, {"x"}, {"y"});
    ModelBuilder::listAttribute(node, "kernel_shape", {2});
    ModelBuilder::listAttribute(node, "strides", {2});
    ModelBuilder::listAttribute(node, "pads", {1, 0});
    ModelBuilder::attribute(node, "ceil_mode", ceil);
    EXPECT_EQ(evaluated(m, {x}), expected) << op;
  }
}

} // namespace
} // namespace fusor::tests
