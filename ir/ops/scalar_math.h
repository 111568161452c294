// The functions of formulas for double and float. The float versions of exp, tanh and erf are branch-free polynomials
// that compilers vectorise (libm calls are not vectorised without -ffast-math); errors are stated and tested.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

namespace fusor::ir {

inline double exp(double x) { return std::exp(x); }
inline double expm1(double x) { return std::expm1(x); }
inline double log(double x) { return std::log(x); }
inline double log1p(double x) { return std::log1p(x); }
inline double sqrt(double x) { return std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline double tanh(double x) { return std::tanh(x); }
inline double erf(double x) { return std::erf(x); }
inline double pow(double a, double b) { return std::pow(a, b); }
inline double fmod(double a, double b) { return std::fmod(a, b); }
/// max and min hand on a NaN, as ONNX, NumPy and PyTorch do.
inline double max(double a, double b) { return a > b || a != a ? a : b; }
inline double min(double a, double b) { return a < b || a != a ? a : b; }
inline double abs(double x) { return std::fabs(x); }
inline double floor(double x) { return std::floor(x); }
inline double ceil(double x) { return std::ceil(x); }
inline double trunc(double x) { return std::trunc(x); }
/// Half to even.
inline double round(double x) { return std::nearbyint(x); }
inline bool isnan(double x) { return x != x; }
inline bool isinf(double x) { return std::fabs(x) > 1.7976931348623157e308; }
inline double select(bool c, double a, double b) { return c ? a : b; }

/// 2^x for integral x in [-126, 127].
inline float exp2Integer(float x) { return std::bit_cast<float>((static_cast<int32_t>(x) + 127) << 23); }

/// Within 2 ulp; 0 below -87.3, infinity above 88.72, NaN kept.
inline float exp(float x) {
  float clamped = x > -87.3f ? (x > 88.72283f ? 88.72283f : x) : -87.3f; // a NaN too: it has no integer below
  float n = std::floor(clamped * 1.44269504f + 0.5f);
  float r = clamped - n * 0.693359375f; // ln 2 in two parts: n * 0.693359375 is exact
  r = r - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  float half = std::floor(n * 0.5f); // 2^n in two factors: n may be 128
  float y = p * exp2Integer(half) * exp2Integer(n - half);
  y = x > 88.72283f ? HUGE_VALF : y;
  y = x < -87.3f ? 0.0f : y;
  return x != x ? x : y;
}

/// Within 2 ulp or 1e-7: an odd polynomial near 0, elsewhere 1 - 2 / (e^2x + 1).
inline float tanh(float x) {
  float a = std::fabs(x);
  float clamped = a > 9.02f ? 9.02f : a; // tanh rounds to 1 beyond
  float big = 1.0f - 2.0f / (exp(2.0f * clamped) + 1.0f);
  float s = x * x;
  float p = -5.70498872745e-3f;
  p = p * s + 2.06390887954e-2f;
  p = p * s + -5.37397155531e-2f;
  p = p * s + 1.33314422036e-1f;
  p = p * s + -3.33332819422e-1f;
  float small = p * s * a + a;
  float y = a < 0.625f ? small : big;
  y = std::copysign(y, x);
  return x != x ? x : y;
}

#define FUSOR_SCALAR(NAME)                                                                                             \
  inline double NAME(double x) { return std::NAME(x); }
FUSOR_SCALAR(sin)
FUSOR_SCALAR(cos) FUSOR_SCALAR(tan) FUSOR_SCALAR(asin) FUSOR_SCALAR(acos) FUSOR_SCALAR(atan) FUSOR_SCALAR(sinh)
    FUSOR_SCALAR(cosh) FUSOR_SCALAR(asinh) FUSOR_SCALAR(acosh) FUSOR_SCALAR(atanh)
#undef FUSOR_SCALAR

    /// A float that stays one: `0.5 * x` of a formula is f32 arithmetic here, where a plain float would become a
    /// double.
    struct F32 {
  float v;
  F32(float value) : v(value) {}
  F32(double value) : v(static_cast<float>(value)) {}
  F32(int value) : v(static_cast<float>(value)) {}
};
#define FUSOR_F32_OPERATOR(RESULT, SYMBOL)                                                                             \
  inline RESULT operator SYMBOL(F32 a, F32 b) { return a.v SYMBOL b.v; }
FUSOR_F32_OPERATOR(F32, +)
FUSOR_F32_OPERATOR(F32, -) FUSOR_F32_OPERATOR(F32, *) FUSOR_F32_OPERATOR(F32, /) FUSOR_F32_OPERATOR(bool, <)
    FUSOR_F32_OPERATOR(bool, <=) FUSOR_F32_OPERATOR(bool, >) FUSOR_F32_OPERATOR(bool, >=) FUSOR_F32_OPERATOR(bool, ==)
        FUSOR_F32_OPERATOR(bool, !=)
#undef FUSOR_F32_OPERATOR
            inline bool
            operator&&(F32 a, F32 b) {
  return a.v != 0 && b.v != 0;
}
inline bool operator||(F32 a, F32 b) { return a.v != 0 || b.v != 0; }
inline bool operator!(F32 a) { return a.v == 0; }
inline F32 operator-(F32 x) { return -x.v; }
inline F32 exp(F32 x) { return exp(x.v); }
inline F32 tanh(F32 x) { return tanh(x.v); }
inline F32 rsqrt(F32 x) { return 1.0f / std::sqrt(x.v); }
inline F32 abs(F32 x) { return std::fabs(x.v); }
inline F32 round(F32 x) { return std::nearbyint(x.v); }
inline bool isnan(F32 x) { return x.v != x.v; }
inline bool isinf(F32 x) { return std::fabs(x.v) > 3.40282347e38f; }
inline F32 max(F32 a, F32 b) { return a.v > b.v || a.v != a.v ? a : b; }
inline F32 min(F32 a, F32 b) { return a.v < b.v || a.v != a.v ? a : b; }
inline F32 select(bool c, F32 a, F32 b) { return c ? a : b; }
inline F32 select(F32 c, F32 a, F32 b) { return c.v != 0 ? a : b; }
inline F32 pow(F32 a, F32 b) { return std::pow(a.v, b.v); }
inline F32 fmod(F32 a, F32 b) { return std::fmod(a.v, b.v); }
#define FUSOR_SCALAR(NAME)                                                                                             \
  inline F32 NAME(F32 x) { return std::NAME(x.v); }
FUSOR_SCALAR(expm1)
FUSOR_SCALAR(log) FUSOR_SCALAR(log1p) FUSOR_SCALAR(sqrt) FUSOR_SCALAR(erf) FUSOR_SCALAR(floor) FUSOR_SCALAR(ceil)
    FUSOR_SCALAR(trunc) FUSOR_SCALAR(sin) FUSOR_SCALAR(cos) FUSOR_SCALAR(tan) FUSOR_SCALAR(asin) FUSOR_SCALAR(acos)
        FUSOR_SCALAR(atan) FUSOR_SCALAR(sinh) FUSOR_SCALAR(cosh) FUSOR_SCALAR(asinh) FUSOR_SCALAR(acosh)
            FUSOR_SCALAR(atanh)
#undef FUSOR_SCALAR

} // namespace fusor::ir
