// The pieces kernel text is made of: literals, names, counts, the writer.
#include "codegen/device/embedded.h"
#include "codegen/emit/code_writer.h"
#include "codegen/emit/count.h"
#include "codegen/emit/literal.h"
#include "codegen/emit/names.h"
#include "ir/ops/counter_rng.h"
#include "tests/support/test_emulator.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstring>
#include <random>

using namespace fusor;
using namespace fusor::codegen;

namespace {

uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}

TEST(Literal, FloatsReadBackAsTheSameBits) {
  std::mt19937 engine(1);
  std::vector<uint32_t> patterns = {0,          0x80000000u, 1,          0x007fffff, 0x00800000,
                                    0x7f7fffff, 0xff7fffff,  0x3f800000, 0x3dcccccd};
  for (int i = 0; i < 20000; ++i) patterns.push_back(engine());
  for (uint32_t bits : patterns) {
    float value;
    std::memcpy(&value, &bits, 4);
    if (!std::isfinite(value)) continue;
    std::string text = floatLiteral(value);
    ASSERT_EQ(text.back(), 'f') << text;
    ASSERT_NE(text.find_first_of(".e"), std::string::npos) << text << " is an integer with a suffix";
    ASSERT_EQ(bitsOf(std::strtof(text.c_str(), nullptr)), bits) << text;
  }
}

TEST(Literal, DoublesReadBackAsTheSameValue) {
  std::mt19937_64 engine(1);
  for (int i = 0; i < 20000; ++i) {
    uint64_t bits = engine();
    double value;
    std::memcpy(&value, &bits, 8);
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(std::strtod(doubleLiteral(value).c_str(), nullptr), value);
  }
  EXPECT_EQ(doubleLiteral(2), "2.0");
  EXPECT_EQ(doubleLiteral(1e-5), "1e-05");
}

TEST(Literal, WhatHasNoDecimalIsMadeOfBits) {
  double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(floatLiteral(inf), "bitsToFloat(0x7f800000u)");
  EXPECT_EQ(floatLiteral(-inf), "-bitsToFloat(0x7f800000u)");
  EXPECT_EQ(floatLiteral(1e308), "bitsToFloat(0x7f800000u)"); // beyond the largest float
  EXPECT_EQ(floatLiteral(std::nan("")), "bitsToFloat(0x7fc00000u)");
  EXPECT_EQ(doubleLiteral(-inf), "-(double)bitsToFloat(0x7f800000u)");
  EXPECT_EQ(integerLiteral(INT64_MIN), "(-9223372036854775807 - 1)");
  EXPECT_EQ(integerLiteral(-7), "-7");
}

TEST(Names, AreMadeNotTaken) {
  EXPECT_EQ(identifierFrom("blocks.3.fc1.bias"), "fc1_bias");
  EXPECT_EQ(identifierFrom("d.blocks.12.qkv.weight.bf16"), "d_qkv_weight");
  EXPECT_EQ(identifierFrom("adamw.m.blocks.0.ln1.weight"), "m_ln1_weight");
  EXPECT_EQ(identifierFrom("bf16"), "bf16");
  EXPECT_EQ(identifierFrom("7.8"), "v");
  EXPECT_EQ(identifierFrom("a b/c"), "a_b_c");
  EXPECT_EQ(identifierFrom("*/ int x; /*"), "int_x");
  EXPECT_EQ(identifierFrom("3"), "v");
  EXPECT_EQ(identifierFrom(""), "v");
  EXPECT_EQ(identifierFrom("__x__y"), "x_y");
  EXPECT_EQ(identifierFrom("\xff\xfe"), "v");
  EXPECT_EQ(identifierFrom(std::string(100, 'a')), std::string(24, 'a'));
}

TEST(Names, AreUnique) {
  NamePool names;
  EXPECT_EQ(names.make("y"), "y");
  EXPECT_EQ(names.make("y"), "y2");
  EXPECT_EQ(names.make("x8"), "x8");
  EXPECT_EQ(names.make("x8"), "x8_2");
  EXPECT_EQ(names.make("while"), "while2");
  EXPECT_EQ(names.make("load"), "load2"); // the device library's
}

TEST(Count, IsAProductOfQuotients) {
  ir::Dim B = ir::Dim::symbol("B");
  Count count = Count::ceilDiv(B * 3, 32) * Count(ir::Dim(768) * B) * Count(4);
  EXPECT_EQ(count.str(), "ceil(3*B / 32) * 3072*B");
  ir::SymbolValues symbols;
  EXPECT_FALSE(count.evaluate(symbols).has_value());
  symbols["B"] = 11;
  EXPECT_EQ(count.evaluate(symbols), 2 * 3072 * 11);
  EXPECT_EQ(Count(B).atMost(5).evaluate(symbols), 5);
  symbols["B"] = 0;
  EXPECT_EQ(count.evaluate(symbols), 0);
  EXPECT_EQ(Count::ceilDiv(33, 32).str(), "2");
  EXPECT_EQ(Count::ceilDiv(B, 4).text([](const ir::Dim &d) { return "(" + d.str() + ")"; }), "(((B) + 3) / 4)");
}

TEST(CodeWriter, ClosesBlocks) {
  CodeWriter w;
  {
    auto loop = w.block("for (i64 i = {0}; i < n; ++i)", 0);
    w.line("use({0}[i]);", "x");
    w.raw("");
  }
  w.noted("int y;", "[3]");
  EXPECT_EQ(w.text().str(),
            "for (i64 i = 0; i < n; ++i) {\n  use(x[i]);\n\n}\nint y;" + std::string(74, ' ') + "// [3]\n");
}

TEST(Device, RandomNumbersAreThoseOfTheIr) {
  std::string text = deviceLibrary({"random.cuh"}) + R"(
extern "C" __global__ void draw(u64 seed, u64 stream, u64 first, float *out) {
  out[threadIdx.x] = rngUniform(rngKey(seed, stream), first + threadIdx.x);
})";
  auto module = fusor::tests::testEmulator().compile(text);
  ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
  for (unsigned long long seed : {0ull, 1ull, ~0ull, 1234567890123ull})
    for (unsigned long long first : {0ull, 1ull << 33, ~0ull - 5}) {
      emulator::GuardedBuffer out(64 * 4);
      auto failed = module->run("draw", {.block = {64}}, seed, seed / 3, first, out);
      ASSERT_FALSE(bool(failed)) << llvm::toString(std::move(failed));
      uint64_t key = ir::rngKey(seed, seed / 3);
      for (unsigned i = 0; i < 64; ++i) ASSERT_EQ(out.as<float>()[i], ir::rngUniform(key, first + i));
    }
}

} // namespace
