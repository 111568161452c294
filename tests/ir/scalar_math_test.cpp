// The float functions of formulas against double, in units of the last place, over a dense sweep of bit patterns.
#include "ir/ops/scalar_math.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstring>
#include <limits>

using namespace fusor;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

float fromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

double ulpOf(double value) {
  float f = std::fabs(static_cast<float>(value));
  return std::max<double>(std::nextafterf(f, kInf) - f, std::numeric_limits<float>::min() * 0x1p-23);
}

// The largest error in ulp of `got(x)` against `exact(x)` over every `step`-th float, both signs, with |x| <= limit.
template <typename Got, typename Exact> double worstUlp(Got got, Exact exact, float limit, uint32_t step = 211) {
  double worst = 0;
  uint32_t top;
  std::memcpy(&top, &limit, 4);
  for (uint32_t bits = 0; bits <= top; bits += step)
    for (uint32_t sign : {0u, 0x80000000u}) {
      float x = fromBits(bits | sign);
      double want = exact(static_cast<double>(x));
      worst = std::max(worst, std::fabs(got(x) - want) / ulpOf(want));
    }
  return worst;
}

TEST(ScalarMath, ExpIsWithin2Ulp) {
  double worst = worstUlp([](float x) { return ir::exp(x); }, [](double x) { return std::exp(x); }, 87.0f);
  RecordProperty("ulp", std::to_string(worst));
  EXPECT_LE(worst, 2.0);
}

TEST(ScalarMath, ExpAtTheEnds) {
  EXPECT_EQ(ir::exp(0.0f), 1.0f);
  EXPECT_EQ(ir::exp(kInf), kInf);
  EXPECT_EQ(ir::exp(-kInf), 0.0f);
  EXPECT_EQ(ir::exp(89.0f), kInf);
  EXPECT_EQ(ir::exp(-88.0f), 0.0f);
  EXPECT_TRUE(std::isnan(ir::exp(std::nanf(""))));
  float last = 88.72283f; // the largest float whose exp is finite
  EXPECT_TRUE(std::isfinite(ir::exp(last)));
  EXPECT_NEAR(ir::exp(last) / std::exp(static_cast<double>(last)), 1, 3e-7);
  for (float x = 87.0f; x < last; x = std::nextafterf(x, kInf))
    ASSERT_LE(std::fabs(ir::exp(x) - std::exp(static_cast<double>(x))), 2 * ulpOf(std::exp(static_cast<double>(x))));
}

TEST(ScalarMath, TanhIsWithin2UlpOr1e7) {
  double worst = 0, absolute = 0;
  for (uint32_t bits = 0; bits < 0x41800000u; bits += 211) {
    float x = fromBits(bits);
    double want = std::tanh(static_cast<double>(x)), error = std::fabs(ir::tanh(x) - want);
    ASSERT_EQ(ir::tanh(-x), -ir::tanh(x));
    if (error > 1e-7) worst = std::max(worst, error / ulpOf(want));
    absolute = std::max(absolute, error);
  }
  RecordProperty("ulp", std::to_string(worst));
  RecordProperty("absolute", std::to_string(absolute * 1e9));
  EXPECT_LE(worst, 2.0);
}

TEST(ScalarMath, TanhAtTheEnds) {
  EXPECT_EQ(ir::tanh(0.0f), 0.0f);
  EXPECT_TRUE(std::signbit(ir::tanh(-0.0f)));
  EXPECT_EQ(ir::tanh(kInf), 1.0f);
  EXPECT_EQ(ir::tanh(-kInf), -1.0f);
  EXPECT_EQ(ir::tanh(20.0f), 1.0f);
  EXPECT_TRUE(std::isnan(ir::tanh(std::nanf(""))));
}

TEST(ScalarMath, MaxAndMinHandOnANaN) {
  double nan = std::nan("");
  for (double other : {1.0, -1.0, nan}) {
    EXPECT_TRUE(std::isnan(ir::max(nan, other)));
    EXPECT_TRUE(std::isnan(ir::max(other, nan)));
    EXPECT_TRUE(std::isnan(ir::min(nan, other)));
    EXPECT_TRUE(std::isnan(ir::min(other, nan)));
    EXPECT_TRUE(ir::isnan(ir::max(ir::F32(nan), ir::F32(other))));
    EXPECT_TRUE(ir::isnan(ir::max(ir::F32(other), ir::F32(nan))));
    EXPECT_TRUE(ir::isnan(ir::min(ir::F32(other), ir::F32(nan))));
  }
  EXPECT_EQ(ir::max(2.0, 3.0), 3.0);
  EXPECT_EQ(ir::min(2.0, 3.0), 2.0);
}

TEST(ScalarMath, RoundIsHalfToEven) {
  for (auto [x, y] : std::initializer_list<std::pair<double, double>>{
           {0.5, 0.0}, {1.5, 2.0}, {2.5, 2.0}, {-0.5, -0.0}, {-1.5, -2.0}, {2.51, 3.0}}) {
    EXPECT_EQ(ir::round(x), y);
    EXPECT_EQ(ir::round(ir::F32(x)).v, static_cast<float>(y));
  }
}

TEST(ScalarMath, InfinityIsInfiniteAndNothingElse) {
  EXPECT_TRUE(ir::isinf(HUGE_VAL));
  EXPECT_TRUE(ir::isinf(-HUGE_VAL));
  EXPECT_FALSE(ir::isinf(std::numeric_limits<double>::max()));
  EXPECT_FALSE(ir::isinf(std::nan("")));
  EXPECT_TRUE(ir::isinf(ir::F32(-kInf)));
  EXPECT_FALSE(ir::isinf(ir::F32(std::numeric_limits<float>::max())));
}

TEST(ScalarMath, F32ArithmeticIsSinglePrecision) {
  ir::F32 third = ir::F32(1.0) / 3.0; // the double constant becomes a float before it divides
  EXPECT_EQ(third.v, 1.0f / 3.0f);
  EXPECT_EQ((0.1 * ir::F32(3)).v, 0.1f * 3.0f);
}

} // namespace
