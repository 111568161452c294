// The vector loops of every instruction set this processor has, against double and against ir's conversions.
#include "ir/types/dtype.h"
#include "runtime/cpu/lanes/dispatch.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

namespace {
using namespace fusor;
using namespace fusor::runtime;
using namespace fusor::runtime::lanes;

std::vector<float> samples() {
  std::vector<float> x;
  for (float magnitude = 1e-30f; magnitude < 1e30f; magnitude *= 1.37f) x.insert(x.end(), {magnitude, -magnitude});
  for (float v = -100; v < 100; v += 0.0371f) x.push_back(v);
  for (float v = -3; v < 3; v += 0.00113f) x.push_back(v);
  float inf = std::numeric_limits<float>::infinity(), tiny = std::numeric_limits<float>::denorm_min();
  x.insert(x.end(), {0.0f, -0.0f, inf, -inf, std::numeric_limits<float>::quiet_NaN(), tiny, 3.4e38f, -3.4e38f, 1.0f});
  return x;
}

// Distance in units of the last place of the exact value, with 1e-37 as the smallest number that counts.
double ulps(float got, double want) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) == std::isnan(got) ? 0 : 1e9;
  if (std::isinf(static_cast<float>(want)) || std::isinf(got)) return static_cast<float>(want) == got ? 0 : 1e9;
  if (std::abs(want) < 1e-37 && std::abs(got) < 2e-37) return 0;
  return std::abs(got - want) / (std::abs(want) * 0x1p-23);
}

TEST(CpuLanes, TranscendentalsAreAccurate) {
  struct Case {
    Fn1 fn;
    double (*exact)(double);
    double ulps;
  } cases[] = {{Fn1::exp, std::exp, 3}, {Fn1::tanh, std::tanh, 4}, {Fn1::log, std::log, 4}};
  auto x = samples();
  std::vector<float> y(x.size());
  for (Isa isa : supportedIsas())
    for (const Case &c : cases) {
      kernelsFor(isa).f32.unary[static_cast<int>(c.fn)](x.data(), y.data(), x.size());
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_LE(ulps(y[i], c.exact(x[i])), c.ulps)
            << isaName(isa).str() << " fn " << int(c.fn) << " at " << x[i] << ": " << y[i];
    }
  for (Isa isa : supportedIsas()) {
    kernelsFor(isa).f32.unary[static_cast<int>(Fn1::erf)](x.data(), y.data(), x.size());
    for (size_t i = 0; i < x.size(); ++i)
      if (!std::isnan(x[i])) {
        ASSERT_NEAR(y[i], std::erf(x[i]), 4e-7 * std::min(1.0, std::abs(std::erf(x[i])) + 1e-6)) << x[i];
      }
  }
}

TEST(CpuLanes, NarrowFormatsAreThoseOfTheIr) {
  auto x = samples();
  for (float v = 1.0f / 1024; v < 70000; v *= 1.003f) x.push_back(v), x.push_back(-v / 3);
  std::vector<float> y(x.size());
  for (Isa isa : supportedIsas()) {
    const Conversions &c = kernelsFor(isa).convert;
    auto compare = [&](ir::DType type, auto format, auto code) {
      using Code = decltype(code);
      std::vector<Code> codes(x.size());
      for (size_t n = 0; n < 2 * x.size(); ++n) {
        size_t i = n % x.size();
        bool saturates = n < x.size();
        if (i == 0) {
          (saturates ? format.round : format.roundUnsaturated)(x.data(), y.data(), x.size());
          format.encode(y.data(), codes.data(), y.size());
        }
        double want = saturates ? ir::roundTo(type, x[i]) : ir::roundUnsaturated(type, x[i]);
        ASSERT_TRUE(y[i] == want || (std::isnan(y[i]) && std::isnan(want)))
            << ir::name(type).str() << " of " << x[i] << " is " << y[i] << ", not " << want;
        Code stored;
        ir::storeElement(type, &stored, 0, want);
        if (!std::isnan(want)) {
          ASSERT_EQ(codes[i], stored) << ir::name(type).str() << " of " << x[i];
        }
      }
      std::vector<Code> all;
      for (unsigned v = 0; v < (1u << (8 * sizeof(Code))); ++v) all.push_back(static_cast<Code>(v));
      std::vector<float> decoded(all.size());
      format.decode(all.data(), decoded.data(), all.size());
      for (size_t i = 0; i < all.size(); ++i) {
        double want = ir::loadElement(type, all.data(), i);
        ASSERT_TRUE(decoded[i] == want || (std::isnan(decoded[i]) && std::isnan(want)))
            << ir::name(type).str() << " code " << i;
      }
    };
    compare(ir::DType::f16, c.f16, uint16_t());
    compare(ir::DType::f8e4m3, c.e4m3, uint8_t());
    compare(ir::DType::f8e5m2, c.e5m2, uint8_t());
    compare(ir::DType::bf16, NarrowFormat<uint16_t>{c.bf16ToF32, c.f32ToBf16, c.roundToBf16, c.roundToBf16},
            uint16_t());
  }
}

TEST(CpuLanes, ReductionsOfAnyLength) {
  for (Isa isa : supportedIsas())
    for (int64_t n : {0, 1, 31, 64, 65, 4097}) {
      std::vector<float> x(n);
      double sum = 0, top = -std::numeric_limits<double>::infinity();
      for (int64_t i = 0; i < n; ++i) x[i] = std::sin(i * 0.7f), sum += x[i], top = std::max<double>(top, x[i]);
      const auto &table = kernelsFor(isa).f32;
      EXPECT_NEAR(table.reduce[0](x.data(), n), sum, 1e-4);
      EXPECT_EQ(table.reduce[1](x.data(), n), static_cast<float>(top));
    }
}

} // namespace
