// Weights of few bits: 4-bit tensors, MatMulNBits, the trt domain, products of 8-bit numbers.
#include "tests/onnx/evaluate.h"
#include "gtest/gtest.h"

namespace fusor::tests {
namespace {

using ir::DType;

std::string bytesOf(std::initializer_list<int> values) {
  std::string bytes;
  for (int value : values) bytes.push_back(static_cast<char>(value));
  return bytes;
}

// --- 4-bit tensors

TEST(OnnxFourBits, TheFirstOfTwoIsInTheLowHalf) {
  for (auto [type, expected] :
       {std::pair(kInt4, "1.000 -1.000 7.000 -8.000 2.000 "), std::pair(kUint4, "1.000 15.000 7.000 8.000 2.000 ")}) {
    for (bool isRaw : {true, false}) {
      ModelBuilder m;
      onnx::Tensor &w = m.initializer("w", {5}, type);
      if (isRaw)
        w.set_raw_data(bytesOf({0xf1, 0x87, 0x02}));
      else
        for (int pair : {0xf1, 0x87, 0x02}) w.add_int32_data(pair);
      m.initializer("scale", {}, kFloat).add_float_data(1);
      m.node("DequantizeLinear", {"w", "scale"}, {"y"});
      EXPECT_EQ(evaluated(m.output("y"), {}), expected);
    }
  }
}

// [2, 4] in blocks of 2 along dim 1, with scales and zero points of each.
TEST(OnnxFourBits, BlocksHaveScalesAndZeroPoints) {
  ModelBuilder m;
  m.initializer("w", {2, 4}, kUint4).set_raw_data(bytesOf({0x21, 0x43, 0x65, 0x87})); // 1 2 3 4 / 5 6 7 8
  auto &scale = m.initializer("scale", {2, 2}, kFloat);
  for (float value : {1.f, 2.f, 3.f, 4.f}) scale.add_float_data(value);
  m.initializer("zero", {2, 2}, kUint4).set_raw_data(bytesOf({0x10, 0x32})); // 0 1 / 2 3
  onnx::Node &node = m.node("DequantizeLinear", {"w", "scale", "zero"}, {"y"});
  ModelBuilder::attribute(node, "axis", 1);
  ModelBuilder::attribute(node, "block_size", 2);
  EXPECT_EQ(evaluated(m.output("y"), {}), "1.000 2.000 4.000 6.000 9.000 12.000 16.000 20.000 ");
}

TEST(OnnxFourBits, WhatMovesThemKeepsThem) {
  ModelBuilder m;
  m.initializer("w", {2, 2}, kInt4).set_raw_data(bytesOf({0x21, 0xf3})); // 1 2 / 3 -1
  m.initializer("scale", {}, kFloat).add_float_data(2);
  m.node("Transpose", {"w"}, {"t"});
  m.node("DequantizeLinear", {"t", "scale"}, {"y"});
  EXPECT_EQ(evaluated(m.output("y"), {}), "2.000 6.000 4.000 -2.000 ");
}

TEST(OnnxFourBits, QuantizingStaysInTheRange) {
  ModelBuilder m;
  m.input("x", {"5"}).output("y", kInt4);
  m.initializer("scale", {}, kFloat).add_float_data(2);
  ModelBuilder::attribute(m.node("QuantizeLinear", {"x", "scale"}, {"y"}), "output_dtype", kInt4);
  EXPECT_EQ(evaluated(m, {tensor(DType::f32, {5}, {-100, -3, 3, 5, 100})}), "-8.000 -2.000 2.000 2.000 7.000 ");
}

TEST(OnnxFourBits, NobodyElseTakesThemForBytes) {
  ModelBuilder m;
  m.input("x", {"2"}, kInt8).output("y", kInt8);
  m.initializer("w", {2}, kInt4).set_raw_data(bytesOf({0x21}));
  m.node("Add", {"x", "w"}, {"y"});
  EXPECT_PART(m.imported(), "input 1 is of a 4-bit type, which is not supported here");

  ModelBuilder mixed;
  mixed.input("x", {"2"}, kInt8).output("y", kInt8);
  mixed.initializer("w", {2}, kInt4).set_raw_data(bytesOf({0x21}));
  ModelBuilder::attribute(mixed.node("Concat", {"x", "w"}, {"y"}), "axis", 0);
  EXPECT_PART(mixed.imported(), "input 1 is of a 4-bit type, which is not supported here");

  ModelBuilder out;
  out.initializer("w", {2}, kInt4).set_raw_data(bytesOf({0x21}));
  out.node("Identity", {"w"}, {"y"});
  EXPECT_PART(out.output("y", kInt8).imported(), "is declared as i8, its node makes 4-bit i8[2]");

  ModelBuilder zero;
  zero.input("x", {"2"}, kInt8).output("y");
  zero.initializer("scale", {}, kFloat).add_float_data(2);
  zero.initializer("zero", {}, kInt4).set_raw_data(bytesOf({0x01}));
  zero.node("DequantizeLinear", {"x", "scale", "zero"}, {"y"});
  EXPECT_PART(zero.imported(), "the zero point is 4-bit i8, the tensor i8");

  ModelBuilder cut;
  cut.initializer("w", {5}, kInt4).set_raw_data(bytesOf({0x21, 0x43}));
  cut.node("Identity", {"w"}, {"y"});
  EXPECT_PART(cut.output("y", kInt4).imported(), "has 2 bytes of raw_data");
}

// --- MatMulNBits

struct Bits {
  int64_t bits, n, k, block;
  bool hasZeros, areFloats; // zero points
};

TEST(OnnxMicrosoft, MatMulNBitsAgainstLoops) {
  for (const Bits &b : {Bits{4, 3, 32, 16, false, false},
                        {4, 3, 32, 16, true, false},
                        {4, 3, 48, 16, true, false},
                        {4, 2, 40, 32, true, true},
                        {8, 3, 32, 16, false, false},
                        {8, 3, 32, 16, true, false},
                        {2, 3, 48, 16, true, false},
                        {2, 2, 24, 16, false, false}}) {
    SCOPED_TRACE(b.bits * 1000 + b.k);
    const int64_t blocks = (b.k + b.block - 1) / b.block, bytes = b.block * b.bits / 8,
                  rowBytes = (blocks * b.bits + 7) / 8, perByte = 8 / b.bits, mask = (1 << b.bits) - 1;
    ModelBuilder m;
    m.input("x", {"R", std::to_string(b.k)})
        .input("w", {std::to_string(b.n), std::to_string(blocks), std::to_string(bytes)}, kUint8);
    m.input("scale", {std::to_string(b.n), std::to_string(blocks)}).output("y");
    std::vector<ir::RefTensor> inputs = {randomTensor(DType::f32, {2, b.k}, 1),
                                         randomTensor(DType::u8, {b.n, blocks, bytes}, 2, 256),
                                         randomTensor(DType::f32, {b.n, blocks}, 3)};
    std::vector<std::string> names = {"x", "w", "scale", "", "", "bias"};
    if (b.hasZeros) {
      names[3] = "zero";
      const int64_t width = b.areFloats ? blocks : rowBytes;
      m.input("zero", {std::to_string(b.n), std::to_string(width)}, b.areFloats ? kFloat : kUint8);
      inputs.push_back(randomTensor(b.areFloats ? DType::f32 : DType::u8, {b.n, width}, 4, 256));
    }
    m.input("bias", {std::to_string(b.n)});
    inputs.push_back(randomTensor(DType::f32, {b.n}, 5));
    onnx::Node &node = m.nodeOf("com.microsoft", "MatMulNBits", names, {"y"});
    for (auto [name, value] : {std::pair("N", b.n), {"K", b.k}, {"bits", b.bits}, {"block_size", b.block}})
      ModelBuilder::attribute(node, name, value);
    Numbers found = resultsOf(m, inputs)[0].data;
    ASSERT_EQ(found.size(), static_cast<size_t>(2 * b.n));
    auto number = [&](const ir::RefTensor &t, int64_t rowStart, int64_t i) {
      return static_cast<int64_t>(t.data[rowStart + i / perByte]) >> (i % perByte * b.bits) & mask;
    };
    for (int64_t r = 0; r < 2; ++r)
      for (int64_t c = 0; c < b.n; ++c) {
        double sum = inputs.back().data[c];
        for (int64_t e = 0; e < b.k; ++e) {
          const int64_t at = e / b.block;
          double zero = static_cast<double>(1 << (b.bits - 1));
          if (b.areFloats) zero = inputs[3].data[c * blocks + at];
          if (b.hasZeros && !b.areFloats) zero = static_cast<double>(number(inputs[3], c * rowBytes, at));
          const auto q = static_cast<double>(number(inputs[1], (c * blocks + at) * bytes, e % b.block));
          sum += inputs[0].data[r * b.k + e] * (q - zero) * inputs[2].data[c * blocks + at];
        }
        EXPECT_NEAR(found[r * b.n + c], sum, 1e-4 * std::max(1.0, std::abs(sum))) << r << ", " << c;
      }
  }
}

TEST(OnnxMicrosoft, MatMulNBitsNamesWhatItCannotRead) {
  auto with = [](llvm::StringRef name, int64_t value, std::vector<std::string> inputs = {"x", "w", "scale"}) {
    ModelBuilder m;
    m.input("x", {"2", "32"}).input("w", {"3", "2", "8"}, kUint8).input("scale", {"3", "2"}).output("y");
    m.input("order", {"32"}, kInt32);
    onnx::Node &node = m.nodeOf("com.microsoft", "MatMulNBits", std::move(inputs), {"y"});
    std::map<std::string, int64_t> attributes{{"N", 3}, {"K", 32}, {"bits", 4}, {"block_size", 16}};
    attributes[name.str()] = value;
    for (const auto &[key, number] : attributes) ModelBuilder::attribute(node, key, number);
    return m.imported();
  };
  EXPECT_PART(with("bits", 4), "matmul");
  EXPECT_PART(with("bits", 3), "attribute 'bits' must be 2, 4 or 8, is 3");
  EXPECT_PART(with("block_size", 24), "block_size = 24 is not supported");
  EXPECT_PART(with("K", 30), "is no float [.., 30]");
  EXPECT_PART(with("N", 4), "weights must be u8[4, 2, 8]");
  EXPECT_PART(with("weight_prepacked", 1), "attribute 'weight_prepacked' is not supported");
  EXPECT_PART(with("bits", 4, {"x", "w", "scale", "", "order"}), "input 4, g_idx, is not supported");
}

// --- trt

TEST(OnnxTrt, ToFp8AndBack) {
  ModelBuilder m;
  m.input("x", {"6"}).output("y");
  m.initializer("scale", {}, kFloat).add_float_data(0.5);
  m.nodeOf("trt", "TRT_FP8QuantizeLinear", {"x", "scale"}, {"q"});
  m.node("TRT_FP8DequantizeLinear", {"q", "scale"}, {"y"}).set_domain("trt");
  // in e4m3: 2, 17 -> 16, 19 -> 20, 2^-10 -> 0, saturated
  EXPECT_EQ(evaluated(m, {tensor(DType::f32, {6}, {1, 8.5, 9.5, 0.00048828125, 1000, -1000})}),
            "1.000 8.000 10.000 0.000 224.000 -224.000 ");
}

TEST(OnnxTrt, WeightsOfFourBitsInBlocks) {
  ModelBuilder m;
  m.initializer("w", {4, 1}, kInt4).set_raw_data(bytesOf({0x21, 0xf8})); // 1 2 -8 -1
  auto &scale = m.initializer("scale", {2, 1}, kFloat);
  scale.add_float_data(2), scale.add_float_data(3);
  onnx::Node &node = m.nodeOf("trt", "DequantizeLinear", {"w", "scale"}, {"y"});
  ModelBuilder::attribute(node, "axis", 0);
  ModelBuilder::attribute(node, "block_size", 2);
  EXPECT_EQ(evaluated(m.output("y"), {}), "2.000 4.000 -24.000 -3.000 ");
}

TEST(OnnxTrt, WhatIsNotReadIsNamed) {
  ModelBuilder m;
  m.input("x", {"2"}, kUint8).output("y");
  m.initializer("scale", {}, kFloat).add_float_data(0.5);
  m.nodeOf("trt", "TRT_FP8DequantizeLinear", {"x", "scale"}, {"y"});
  EXPECT_PART(m.imported(), "input 0 must be f8e4m3, is u8");
  ModelBuilder n;
  n.input("x", {"2"}).output("y");
  n.nodeOf("trt", "TRT_FP4QDQ", {"x"}, {"y"});
  EXPECT_PART(n.imported(), "there is no such operator in Fusor");
}

// --- products of 8-bit numbers

ModelBuilder integers(std::vector<std::string> zeroA, std::vector<std::string> zeroB) {
  ModelBuilder m;
  m.input("a", {"2", "3"}, kUint8).input("b", {"3", "2"}, kInt8).output("y", kInt32);
  m.input("za", std::move(zeroA), kUint8).input("zb", std::move(zeroB), kInt8);
  m.node("MatMulInteger", {"a", "b", "za", "zb"}, {"y"});
  return m;
}

TEST(OnnxMatMulInteger, ZeroPointsOfRowsAndColumns) {
  ir::RefTensor a = tensor(DType::u8, {2, 3}, {1, 2, 3, 255, 0, 4}),
                b = tensor(DType::i8, {3, 2}, {1, -1, 2, 0, -3, 5});
  // of a row of a, and of a column of b
  EXPECT_EQ(evaluated(integers({"2"}, {"2"}), {a, b, tensor(DType::u8, {2}, {1, 5}), tensor(DType::i8, {2}, {0, 1})}),
            "-4.000 7.000 243.000 -499.000 ");
  EXPECT_EQ(evaluated(integers({"2", "1"}, {"1", "2"}),
                      {a, b, tensor(DType::u8, {2, 1}, {1, 5}), tensor(DType::i8, {1, 2}, {0, 1})}),
            "-4.000 7.000 243.000 -499.000 ");
  EXPECT_EQ(evaluated(integers({}, {"1"}), {a, b, tensor(DType::u8, {}, {1}), tensor(DType::i8, {1}, {-1})}),
            "-1.000 13.000 499.000 17.000 ");
}

TEST(OnnxMatMulInteger, ZeroPointsAlongTheSumAreRefused) {
  EXPECT_PART(integers({"1", "3"}, {}).imported(), "the zero points u8[1, 3] are not those of rows of u8[2, 3]");
  EXPECT_PART(integers({}, {"3", "1"}).imported(), "the zero points i8[3, 1] are not those of columns of i8[3, 2]");
  EXPECT_PART(integers({"3"}, {}).imported(), "the zero points u8[3, 1] are not those of rows");
}

} // namespace
} // namespace fusor::tests
