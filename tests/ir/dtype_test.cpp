// Every bit pattern of every narrow float against a decoder written from the format's definition, and rounding against
// a search of the sorted table of all its values.
#include "ir/types/dtype.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

using namespace fusor::ir;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Format {
  DType type;
  int exponentBits, mantissaBits, bias;
  bool hasInf, saturates;
};
constexpr Format kFormats[] = {
    {DType::f16, 5, 10, 15, true, false},
    {DType::bf16, 8, 7, 127, true, false},
    {DType::f8e4m3, 4, 3, 7, false, true},
    {DType::f8e5m2, 5, 2, 15, true, true},
};

// The definition: (-1)^s 2^(e - bias) 1.m, or 2^(1 - bias) 0.m for e = 0.
double decode(const Format &f, unsigned bits) {
  int e = (bits >> f.mantissaBits) & ((1 << f.exponentBits) - 1), m = bits & ((1 << f.mantissaBits) - 1);
  double sign = bits >> (f.exponentBits + f.mantissaBits) ? -1 : 1, step = std::ldexp(1.0, -f.mantissaBits);
  if (e == (1 << f.exponentBits) - 1) {
    if (f.hasInf) return m ? NAN : sign * kInf;
    if (m == (1 << f.mantissaBits) - 1) return NAN; // f8e4m3: only the last pattern
  }
  return sign * (e ? std::ldexp(1 + m * step, e - f.bias) : std::ldexp(m * step, 1 - f.bias));
}

unsigned patterns(DType type) { return 1u << (8 * byteSize(type)); }

double load(DType type, unsigned bits) {
  unsigned char bytes[2] = {static_cast<unsigned char>(bits), static_cast<unsigned char>(bits >> 8)};
  return loadElement(type, bytes, 0);
}
unsigned store(DType type, double value) {
  unsigned char bytes[2] = {0, 0};
  storeElement(type, bytes, 0, value);
  return bytes[0] | bytes[1] << 8;
}

class Narrow : public testing::TestWithParam<Format> {};

TEST_P(Narrow, EveryPatternLoadsAsTheFormatDefines) {
  const Format &f = GetParam();
  for (unsigned bits = 0; bits < patterns(f.type); ++bits) {
    double expected = decode(f, bits), loaded = load(f.type, bits);
    if (std::isnan(expected))
      ASSERT_TRUE(std::isnan(loaded)) << bits;
    else {
      ASSERT_EQ(loaded, expected) << bits;
      ASSERT_EQ(std::signbit(loaded), std::signbit(expected)) << bits;
    }
  }
}

TEST_P(Narrow, EveryPatternSurvivesLoadAndStore) {
  const Format &f = GetParam();
  for (unsigned bits = 0; bits < patterns(f.type); ++bits) {
    double value = load(f.type, bits);
    unsigned back = store(f.type, value);
    if (std::isnan(value))
      ASSERT_TRUE(std::isnan(load(f.type, back))) << bits;
    else
      ASSERT_EQ(back, bits);
  }
}

TEST_P(Narrow, RoundsToTheNearestValueAndTiesToEven) {
  const Format &f = GetParam();
  std::vector<std::pair<double, unsigned>> finite; // value, pattern: non-negative ones ascend with the pattern
  for (unsigned bits = 0; bits < patterns(f.type) / 2; ++bits)
    if (std::isfinite(decode(f, bits))) finite.emplace_back(decode(f, bits), bits);
  ASSERT_EQ(finite.back().first, maxFinite(f.type));
  for (size_t i = 0; i + 1 < finite.size(); ++i) {
    auto [low, lowBits] = finite[i];
    double high = finite[i + 1].first, middle = (low + high) / 2, even = lowBits % 2 ? high : low;
    for (double sign : {1.0, -1.0}) {
      ASSERT_EQ(roundTo(f.type, sign * middle), sign * even);
      ASSERT_EQ(roundTo(f.type, sign * std::nextafter(middle, 0)), sign * low);
      ASSERT_EQ(roundTo(f.type, sign * std::nextafter(middle, kInf)), sign * high);
      ASSERT_EQ(roundTo(f.type, sign * low), sign * low);
    }
  }
}

TEST_P(Narrow, OverflowsAsTheFormatDoes) {
  const Format &f = GetParam();
  double max = maxFinite(f.type), ulp = max - decode(f, store(f.type, max) - 1);
  double beyond = f.saturates ? max : kInf;
  EXPECT_EQ(roundTo(f.type, max + ulp * 0.499), max);
  EXPECT_EQ(roundTo(f.type, max + ulp * 0.5), beyond); // the tie goes to the even pattern, which is out of range
  EXPECT_EQ(roundTo(f.type, 1e300), beyond);
  EXPECT_EQ(roundTo(f.type, kInf), beyond);
  EXPECT_EQ(roundTo(f.type, -kInf), -beyond);
  EXPECT_TRUE(std::isnan(roundTo(f.type, NAN)));
  EXPECT_EQ(roundTo(f.type, 1e-300), 0);
  EXPECT_TRUE(std::signbit(roundTo(f.type, -1e-300)));
}

INSTANTIATE_TEST_SUITE_P(DType, Narrow, testing::ValuesIn(kFormats),
                         [](const auto &info) { return name(info.param.type).str(); });

TEST(DType, F32RoundsLikeTheHardware) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    uint64_t bits = random();
    double value;
    std::memcpy(&value, &bits, 8);
    if (!std::isfinite(value) || std::fabs(value) > 1e38) continue;
    ASSERT_EQ(roundTo(DType::f32, value), static_cast<double>(static_cast<float>(value)));
  }
}

TEST(DType, E8M0IsAPowerOfTwoOrNaN) {
  for (unsigned bits = 0; bits < 255; ++bits) {
    EXPECT_EQ(load(DType::f8e8m0, bits), std::ldexp(1.0, static_cast<int>(bits) - 127));
    EXPECT_EQ(store(DType::f8e8m0, load(DType::f8e8m0, bits)), bits);
  }
  EXPECT_TRUE(std::isnan(load(DType::f8e8m0, 255)));
  EXPECT_EQ(store(DType::f8e8m0, NAN), 255u);
  EXPECT_EQ(roundTo(DType::f8e8m0, 3.1), 4);
  EXPECT_EQ(roundTo(DType::f8e8m0, 2.9), 2);
  EXPECT_EQ(roundTo(DType::f8e8m0, 0), std::ldexp(1.0, -127)); // it has no zero and no sign
  EXPECT_EQ(roundTo(DType::f8e8m0, -5), std::ldexp(1.0, -127));
  EXPECT_EQ(roundTo(DType::f8e8m0, 1e300), std::ldexp(1.0, 127));
  EXPECT_EQ(roundTo(DType::f8e8m0, kInf), std::ldexp(1.0, 127));
}

template <typename T> void expectSaturates(DType type) {
  using Limits = std::numeric_limits<T>;
  T stored[4];
  double values[4] = {1e30, -1e30, NAN, -2.9};
  for (int i = 0; i < 4; ++i) storeElement(type, stored, i, values[i]);
  EXPECT_EQ(stored[0], Limits::max());
  EXPECT_EQ(stored[1], Limits::min());
  EXPECT_EQ(stored[2], T(0));
  EXPECT_EQ(stored[3], Limits::is_signed ? T(-2) : T(0)) << "towards zero";
}

TEST(DType, IntegersTruncateAndSaturate) {
  expectSaturates<int64_t>(DType::i64);
  expectSaturates<int32_t>(DType::i32);
  expectSaturates<int16_t>(DType::i16);
  expectSaturates<int8_t>(DType::i8);
  expectSaturates<uint64_t>(DType::u64);
  expectSaturates<uint32_t>(DType::u32);
  expectSaturates<uint16_t>(DType::u16);
  expectSaturates<uint8_t>(DType::u8);
}

TEST(DType, IntegersOfUpTo16BitsRoundTrip) {
  for (DType type : {DType::i16, DType::u16, DType::i8, DType::u8})
    for (unsigned bits = 0; bits < patterns(type); ++bits) ASSERT_EQ(store(type, load(type, bits)), bits);
}

TEST(DType, BooleansAreZeroOrOne) {
  for (double v : {1.0, -3.0, 0.25}) EXPECT_EQ(store(DType::i1, v), 1u);
  EXPECT_EQ(store(DType::i1, 0), 0u);
  EXPECT_EQ(load(DType::i1, 255), 1);
}

TEST(DType, NamesRoundTripAndClassesCoverEveryType) {
  for (DType type : kAllDTypes) {
    EXPECT_EQ(parseDType(name(type)), type);
    EXPECT_EQ(isFloat(type) + isInteger(type) + (type == DType::i1), 1) << name(type).str();
    EXPECT_TRUE(isFloat(type) || !(isNarrowFloat(type) || isFp8(type)));
  }
  EXPECT_EQ(parseDType("f8"), std::nullopt);
  EXPECT_TRUE(isSigned(DType::i8));
  EXPECT_FALSE(isSigned(DType::u64));
  EXPECT_FALSE(isNarrowFloat(DType::f32));
  EXPECT_EQ(maxFinite(DType::f8e4m3), 448);
  EXPECT_EQ(maxFinite(DType::f8e5m2), 57344);
}

} // namespace
