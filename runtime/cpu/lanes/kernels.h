#pragma once
// The vectorised loops of the blocked interpreter, one set per instruction set (kernels_*.cpp). Every loop works on a
// block of lanes in the L1 or L2 cache: f32 lanes for f32, narrower floats and i1, f64 lanes for f64 and integers.
//
// The translation units are compiled with flags that the processor at hand may not have, so this header is plain
// declarations; see gemm/kernel.h.
#include <cstdint>

namespace fusor::runtime::lanes {

/// Functions of ir::Expr, in the order of kScalarFunctions' meaning: unary, then binary.
enum class Fn1 : uint8_t {
  neg,
  abs,
  exp,
  expm1,
  log,
  log1p,
  sqrt,
  rsqrt,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  tanh,
  asinh,
  acosh,
  atanh,
  erf,
  floor,
  ceil,
  round,
  trunc,
  isnan,
  isinf,
  logicalNot,
  copy,
  count
};
enum class Fn2 : uint8_t {
  add,
  sub,
  mul,
  div,
  lt,
  le,
  gt,
  ge,
  eq,
  ne,
  logicalAnd,
  logicalOr,
  pow,
  fmod,
  max,
  min,
  count
};
/// Which operand of a binary loop is one number for the whole loop.
enum class Mode : uint8_t { vectors, rightScalar, leftScalar, count };
enum class Reduce : uint8_t { sum, max, min, count };

/// Comparisons give 1 or 0 in the lanes' type.
template <typename T> struct Table {
  void (*unary[static_cast<int>(Fn1::count)])(const T *x, T *y, int64_t n);
  void (*binary[static_cast<int>(Fn2::count)][static_cast<int>(Mode::count)])(const T *a, const T *b, T *y, int64_t n);
  /// y = c ? a : b; aStep and bStep are 1, or 0 where that operand is one number.
  void (*select)(const T *c, const T *a, int64_t aStep, const T *b, int64_t bStep, T *y, int64_t n);
  void (*fill)(T value, T *y, int64_t n);
  /// All n lanes to one, in a fixed order: 64 running results, then a tree.
  T (*reduce[static_cast<int>(Reduce::count)])(const T *x, int64_t n);
  /// y[i] = combine(y[i], x[i])
  void (*accumulate[static_cast<int>(Reduce::count)])(const T *x, T *y, int64_t n);
  /// y[i] = x[i * stride]
  void (*gatherStrided)(const T *x, int64_t stride, T *y, int64_t n);
};

/// One narrow float format: its code to lanes, rounded lanes to its code, lanes to rounded lanes.
template <typename Code> struct NarrowFormat {
  void (*decode)(const Code *x, float *y, int64_t n);
  void (*encode)(const float *x, Code *y, int64_t n);
  void (*round)(const float *x, float *y, int64_t n);
  /// What is too large for FP8 becomes Inf, or NaN where there is none; of f16 the same as round.
  void (*roundUnsaturated)(const float *x, float *y, int64_t n);
};

/// Conversions between storage and lanes.
struct Conversions {
  void (*bf16ToF32)(const uint16_t *x, float *y, int64_t n);
  /// y is already rounded to bf16.
  void (*f32ToBf16)(const float *x, uint16_t *y, int64_t n);
  /// Nearest even; a NaN stays one.
  void (*roundToBf16)(const float *x, float *y, int64_t n);
  void (*f32ToF64)(const float *x, double *y, int64_t n);
  void (*f64ToF32)(const double *x, float *y, int64_t n);
  void (*i32ToF64)(const int32_t *x, double *y, int64_t n);
  void (*i64ToF64)(const int64_t *x, double *y, int64_t n);
  void (*boolToF32)(const uint8_t *x, float *y, int64_t n);
  void (*f32ToBool)(const float *x, uint8_t *y, int64_t n);
  NarrowFormat<uint16_t> f16;
  NarrowFormat<uint8_t> e4m3, e5m2;
};

/// Attention's inner loops.
struct RowKernels {
  /// y[i] = exp(x[i] * scale - top); returns the sum, in the order of Table::reduce.
  float (*expSum)(const float *x, float scale, float top, float *y, int64_t n);
  float (*dot)(const float *a, const float *b, int64_t n);
  /// y += a * x
  void (*axpy)(float a, const float *x, float *y, int64_t n);
};

struct Kernels {
  Table<float> f32;
  Table<double> f64;
  Conversions convert;
  RowKernels rows;
};

#define FUSOR_LANE_KERNELS(ISA)                                                                                        \
  namespace ISA {                                                                                                      \
  extern const Kernels kernels;                                                                                        \
  }
FUSOR_LANE_KERNELS(baseline)
FUSOR_LANE_KERNELS(avx2)
FUSOR_LANE_KERNELS(avx512)
#undef FUSOR_LANE_KERNELS

} // namespace fusor::runtime::lanes
