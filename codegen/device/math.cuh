// needs: types.cuh
// The functions that generated expressions call, in namespace `math`, for float and double:
//
//   exp exp2 expm1 log log2 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc
//   floor ceil trunc abs                  as in C
//   round(x)                              to the nearest integer, halves to even
//   pow(x, y) fmod(x, y) atan2(y, x)      as in C
//   maximum(a, b) minimum(a, b)           NaN if either is NaN; also for integers
//   sign(x)                               -1, 0, 1; NaN stays NaN; also for integers
//   isNan isInf isFinite                  bool
//   select(condition, a, b)               both are evaluated
//   floorDivide(a, b) floorModulo(a, b)   integers, toward minus infinity; b = 0 gives 0 (no trap on the host)
//   divide(a, b) remainder(a, b)          integers, toward zero; b = 0 gives 0
//   tanhBesideOne(x)                      tanh for 1 + tanh(x) and 1 - tanh(x)^2: absolute error below 2^-22, a third
//                                         of the instructions
//
// No fast-math: each other one is the CUDA function of full accuracy (1-4 ulp), so results are the same for every
// launch.

namespace math {

#define FUSOR_UNARY(name, single, full)                                                                                \
  __device__ inline float name(float x) { return ::single(x); }                                                        \
  __device__ inline double name(double x) { return ::full(x); }
FUSOR_UNARY(exp, expf, exp)
FUSOR_UNARY(exp2, exp2f, exp2)
FUSOR_UNARY(expm1, expm1f, expm1)
FUSOR_UNARY(log, logf, log)
FUSOR_UNARY(log2, log2f, log2)
FUSOR_UNARY(log1p, log1pf, log1p)
FUSOR_UNARY(sqrt, sqrtf, sqrt)
FUSOR_UNARY(rsqrt, rsqrtf, rsqrt)
FUSOR_UNARY(sin, sinf, sin)
FUSOR_UNARY(cos, cosf, cos)
FUSOR_UNARY(tan, tanf, tan)
FUSOR_UNARY(asin, asinf, asin)
FUSOR_UNARY(acos, acosf, acos)
FUSOR_UNARY(atan, atanf, atan)
FUSOR_UNARY(sinh, sinhf, sinh)
FUSOR_UNARY(cosh, coshf, cosh)
FUSOR_UNARY(tanh, tanhf, tanh)
FUSOR_UNARY(asinh, asinhf, asinh)
FUSOR_UNARY(acosh, acoshf, acosh)
FUSOR_UNARY(atanh, atanhf, atanh)
FUSOR_UNARY(erf, erff, erf)
FUSOR_UNARY(erfc, erfcf, erfc)
FUSOR_UNARY(floor, floorf, floor)
FUSOR_UNARY(ceil, ceilf, ceil)
FUSOR_UNARY(trunc, truncf, trunc)
FUSOR_UNARY(abs, fabsf, fabs)
FUSOR_UNARY(round, rintf, rint)
#undef FUSOR_UNARY
// The special function unit, within 2 ulp; what is smaller than 2^-126 counts as 0.
__device__ inline float unitExp2(float x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return ::exp2f(x);
#endif
}
__device__ inline float unitReciprocal(float x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return 1.0f / x;
#endif
}
// 1 - 2 / (exp(2x) + 1)
__device__ inline float tanhBesideOne(float x) {
  return 1.0f - 2.0f * unitReciprocal(unitExp2(x * 2.885390082f) + 1.0f);
}

__device__ inline float pow(float x, float y) { return ::powf(x, y); }
__device__ inline double pow(double x, double y) { return ::pow(x, y); }
__device__ inline float fmod(float x, float y) { return ::fmodf(x, y); }
__device__ inline double fmod(double x, double y) { return ::fmod(x, y); }
__device__ inline float atan2(float y, float x) { return ::atan2f(y, x); }
__device__ inline double atan2(double y, double x) { return ::atan2(y, x); }
__device__ inline i32 abs(i32 x) { return x < 0 ? (i32)(0u - (u32)x) : x; } // the lowest value stays itself
__device__ inline i64 abs(i64 x) { return x < 0 ? (i64)(0ull - (u64)x) : x; }

template <class T> __device__ inline T maximum(T a, T b) { return a > b || a != a ? a : b; }
template <class T> __device__ inline T minimum(T a, T b) { return a < b || a != a ? a : b; }
template <class T> __device__ inline T sign(T x) { return x > (T)0 ? (T)1 : x < (T)0 ? (T)-1 : x; }
template <class T> __device__ inline T select(bool condition, T a, T b) { return condition ? a : b; }

template <class T> __device__ inline bool isNan(T x) { return x != x; }
template <class T> __device__ inline bool isFinite(T x) { return x - x == (T)0; }
template <class T> __device__ inline bool isInf(T x) { return !isNan(x) && !isFinite(x); }

template <class T> __device__ inline T divide(T a, T b) {
  if (b == (T)0) return (T)0;
  if (b == (T)-1 && (T)-1 < (T)0) return (T)(0ull - (u64)a); // the lowest value / -1 would trap
  return (T)(a / b);
}
template <class T> __device__ inline T remainder(T a, T b) {
  if (b == (T)0 || (b == (T)-1 && (T)-1 < (T)0)) return (T)0;
  return (T)(a % b);
}
template <class T> __device__ inline T floorModulo(T a, T b) {
  T rest = remainder(a, b);
  return rest != (T)0 && (rest < (T)0) != (b < (T)0) ? (T)(rest + b) : rest;
}
template <class T> __device__ inline T floorDivide(T a, T b) {
  T quotient = divide(a, b);
  T rest = remainder(a, b);
  return rest != (T)0 && (rest < (T)0) != (b < (T)0) ? (T)(quotient - 1) : quotient;
}

} // namespace math
