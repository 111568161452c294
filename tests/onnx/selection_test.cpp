// TopK, OneHot, NonZero, TensorScatter and the modes of Pad: what the standard's own tests leave out.
#include "tests/onnx/evaluate.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace fusor::tests {
namespace {

using ir::DType;
const double kNaN = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

// --- TopK

ModelBuilder topK(std::vector<std::string> dims, int64_t k, int64_t axis, bool largest) {
  ModelBuilder m;
  m.input("x", std::move(dims)).ints("k", {k}).output("values").output("indices", kInt64);
  onnx::Node &node = m.node("TopK", {"x", "k"}, {"values", "indices"});
  ModelBuilder::attribute(node, "axis", axis);
  ModelBuilder::attribute(node, "largest", largest);
  return m;
}

TEST(OnnxTopK, AgainstASortOfEachRow) {
  const int64_t outer = 3, n = 9, inner = 2, k = 4;
  ir::RefTensor x = randomTensor(DType::f32, {outer, n, inner}, 1);
  for (double &value : x.data) value = std::round(value * 2); // many are equal
  x.data[4] = kNaN, x.data[10] = kNaN, x.data[6] = kInfinity, x.data[8] = -kInfinity;
  for (bool largest : {true, false}) {
    auto found = resultsOf(topK({"B", "9", "2"}, k, 1, largest), {x});
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        std::vector<int64_t> order(n);
        for (int64_t e = 0; e < n; ++e) order[e] = e;
        auto key = [&](int64_t e) { return x.data[(o * n + e) * inner + i]; };
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { // NaN is above all
          double p = largest ? key(a) : key(b), q = largest ? key(b) : key(a);
          return p > q || (std::isnan(p) && !std::isnan(q));
        });
        for (int64_t r = 0; r < k; ++r) {
          const int64_t at = (o * k + r) * inner + i;
          EXPECT_EQ(found[1].data[at], order[r]) << largest << " " << o << " " << i << " " << r;
          const double value = found[0].data[at], wanted = key(order[r]);
          EXPECT_TRUE(value == wanted || (std::isnan(value) && std::isnan(wanted))) << value << ", not " << wanted;
        }
      }
  }
}

TEST(OnnxTopK, AllAndNone) {
  ir::RefTensor x = tensor(DType::f32, {3}, {2, 3, 1});
  EXPECT_EQ(evaluated(topK({"3"}, 3, -1, true), {x}), "3.000 2.000 1.000 ");
  EXPECT_EQ(evaluated(topK({"3"}, 0, -1, true), {x}), "");
}

TEST(OnnxTopK, WhatCannotBeRankedIsNamed) {
  EXPECT_PART(topK({"3"}, 4, 0, true).imported(), "k is 4 of 3 elements");
  ModelBuilder m = topK({"3"}, 1, 0, true);
  m.model.mutable_graph()->mutable_node(0)->mutable_attribute(1)->set_i(2);
  EXPECT_PART(m.imported(), "attribute 'largest' must be 0 or 1, is 2");
  EXPECT_PART(topK({"2", "50000"}, 4, 1, true).imported(), "along axis 1 is not supported: each element is compared");
  EXPECT_PART(topK({"4096", "4096"}, 4, 1, true).imported(), "each element is compared with each");
  EXPECT_PART(topK({"2", "N"}, 4, 1, true).imported(), "each element is compared with each");
}

// --- OneHot, NonZero

TEST(OnnxOneHot, IndicesOutsideAreOff) {
  ModelBuilder m;
  m.input("i", {"5"}, kInt64).ints("depth", {3}).output("y");
  auto &values = m.initializer("values", {2}, kFloat);
  values.add_float_data(0), values.add_float_data(2);
  ModelBuilder::attribute(m.node("OneHot", {"i", "depth", "values"}, {"y"}), "axis", 0);
  EXPECT_EQ(evaluated(m, {tensor(DType::i64, {5}, {0, 2, -1, 3, -4})}), "2.000 0.000 0.000 0.000 0.000 "
                                                                        "0.000 0.000 0.000 0.000 0.000 "
                                                                        "0.000 2.000 2.000 0.000 0.000 ");
}

TEST(OnnxNonZero, ItsCountMustBeKnown) {
  ModelBuilder m;
  auto &x = m.initializer("x", {2, 3}, kFloat);
  for (float value : {0.f, 1.f, 0.f, 2.f, 0.f, -3.f}) x.add_float_data(value);
  m.node("NonZero", {"x"}, {"y"});
  EXPECT_EQ(evaluated(m.output("y", kInt64), {}), "0.000 1.000 1.000 1.000 0.000 2.000 ");
  ModelBuilder n;
  n.input("x", {"3"}).node("NonZero", {"x"}, {"y"});
  EXPECT_PART(n.output("y", kInt64).imported(), "what is not 0 depends on what is in input 'x'");
}

// --- TensorScatter

ModelBuilder scatter(const char *mode, bool hasStarts) {
  ModelBuilder m(24);
  m.input("cache", {"B", "N", "1"}).input("update", {"B", "2", "1"}).input("starts", {"B"}, kInt64).output("y");
  std::vector<std::string> inputs = {"cache", "update"};
  if (hasStarts) inputs.push_back("starts");
  ModelBuilder::textAttribute(m.node("TensorScatter", std::move(inputs), {"y"}), "mode", mode);
  return m;
}

TEST(OnnxTensorScatter, EachSequenceHasItsPlace) {
  ir::RefTensor cache = tensor(DType::f32, {2, 3, 1}, {1, 2, 3, 4, 5, 6}),
                update = tensor(DType::f32, {2, 2, 1}, {10, 20, 30, 40});
  EXPECT_EQ(evaluated(scatter("linear", true), {cache, update, tensor(DType::i64, {2}, {1, 0})}),
            "1.000 10.000 20.000 30.000 40.000 6.000 ");
  EXPECT_EQ(evaluated(scatter("linear", false), {cache, update, tensor(DType::i64, {2}, {1, 1})}),
            "10.000 20.000 3.000 30.000 40.000 6.000 ");
  EXPECT_EQ(evaluated(scatter("circular", true), {cache, update, tensor(DType::i64, {2}, {2, 1})}),
            "20.000 2.000 10.000 4.000 30.000 40.000 ");
  EXPECT_PART(scatter("spiral", true).imported(), "attribute 'mode' = 'spiral' is not supported");
}

// --- Pad

ModelBuilder pad(const char *mode, std::vector<int64_t> pads, const char *dim) {
  ModelBuilder m;
  m.input("x", {dim}).ints("pads", std::move(pads)).output("y");
  ModelBuilder::textAttribute(m.node("Pad", {"x", "pads"}, {"y"}), "mode", mode);
  return m;
}

TEST(OnnxPad, ModesReadTheTensorAgain) {
  ir::RefTensor x = tensor(DType::f32, {3}, {1, 2, 3});
  for (const char *dim : {"3", "N"}) {
    EXPECT_EQ(evaluated(pad("edge", {2, 1}, dim), {x}), "1.000 1.000 1.000 2.000 3.000 3.000 ");
    EXPECT_EQ(evaluated(pad("reflect", {2, 2}, dim), {x}), "3.000 2.000 1.000 2.000 3.000 2.000 1.000 ");
    EXPECT_EQ(evaluated(pad("wrap", {2, 1}, dim), {x}), "2.000 3.000 1.000 2.000 3.000 1.000 ");
    // further than the tensor is long
    EXPECT_EQ(evaluated(pad("reflect", {5, 0}, dim), {x}), "2.000 1.000 2.000 3.000 2.000 1.000 2.000 3.000 ");
    EXPECT_EQ(evaluated(pad("wrap", {0, 4}, dim), {x}), "1.000 2.000 3.000 1.000 2.000 3.000 1.000 ");
  }
  EXPECT_PART(pad("reflect", {1, 0}, "1").imported(), "mode reflect needs 2 elements along axis 0 of f32[1]");
  EXPECT_PART(pad("edge", {1, -1}, "3").imported(), "pads that cut are supported in mode constant only");
  EXPECT_PART(pad("mirror", {1, 0}, "3").imported(), "attribute 'mode' = 'mirror' is not supported");
}

} // namespace
} // namespace fusor::tests
