// needs:
// Scalar types and their conversions, in bit arithmetic that any GPU (and the host emulator) runs the same way, or by
// the instruction that does the same where there is one (a NaN it makes is the canonical one).
//
//   storage type          load() gives     store() / convert() takes
//   f32                   float            float            unchanged
//   double                double           double           unchanged
//   bf16 f16              float            float            round to nearest even, overflow to Inf, NaN kept
//   f8e4m3 f8e5m2         float            float            round to nearest even, saturating (Inf too), NaN kept
//   i8..i64, u8..u64      itself           anything         from floating point: toward zero, saturating, NaN to 0
//   i1                    bool             anything         v != 0
//
// `ComputeOf<T>` is the middle column. Self-contained: NVRTC compiles it without a header, and so does the host.
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

struct i1 {
  u8 bits;
}; // a boolean as stored: one byte, any non-zero value reads as true
struct bf16 {
  u16 bits;
}; // 1 sign, 8 exponent, 7 mantissa
struct f16 {
  u16 bits;
}; // 1, 5, 10
struct f8e4m3 {
  u8 bits;
}; // 1, 4, 3: no Inf, one NaN (0x7f), largest 448
struct f8e5m2 {
  u8 bits;
}; // 1, 5, 2: Inf, NaN, largest 57344

template <class T> struct ComputeTrait { typedef T type; };
template <> struct ComputeTrait<i1> { typedef bool type; };
template <> struct ComputeTrait<bf16> { typedef float type; };
template <> struct ComputeTrait<f16> { typedef float type; };
template <> struct ComputeTrait<f8e4m3> { typedef float type; };
template <> struct ComputeTrait<f8e5m2> { typedef float type; };
template <class T> using ComputeOf = typename ComputeTrait<T>::type;

__device__ inline u32 floatBits(float x) { return __float_as_uint(x); }
__device__ inline float bitsToFloat(u32 bits) { return __uint_as_float(bits); }

// ---- small floating-point formats ----------------------------------------------------------------------------------

// The magnitude bits of a format with kExponent exponent and kMantissa mantissa bits -> float. Exact.
// Inf and NaN of the format are the caller's business.
template <int kExponent, int kMantissa> __device__ inline float decodeMagnitude(u32 bits) {
  const int bias = (1 << (kExponent - 1)) - 1;
  u32 exponent = bits >> kMantissa, mantissa = bits & ((1u << kMantissa) - 1);
  if (exponent == 0) // subnormal: mantissa * 2^(1 - bias - kMantissa), a product of two exact floats
    return (float)mantissa * bitsToFloat((u32)(127 + 1 - bias - kMantissa) << 23);
  return bitsToFloat(((exponent + 127 - bias) << 23) | (mantissa << (23 - kMantissa)));
}

// |x| as float bits (finite or Inf) -> magnitude bits, round to nearest even. The exponent may run past the format's
// largest: the caller compares with its largest finite magnitude.
template <int kExponent, int kMantissa> __device__ inline u32 encodeMagnitude(u32 magnitude) {
  const int bias = (1 << (kExponent - 1)) - 1;
  const int dropped = 23 - kMantissa;
  int exponent = (int)(magnitude >> 23) - 127;
  if (exponent >= 1 - bias) {
    u32 rounded = magnitude + ((1u << (dropped - 1)) - 1) + ((magnitude >> dropped) & 1);
    return (rounded >> dropped) - ((u32)(127 - bias) << kMantissa);
  }
  int shift = dropped + (1 - bias - exponent); // subnormal: the implicit one becomes explicit and moves right
  if (shift > 24) return 0;                    // below half of the smallest subnormal
  u32 mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  u32 kept = mantissa >> shift, rest = mantissa & ((1u << shift) - 1), half = 1u << (shift - 1);
  return kept + (rest > half || (rest == half && (kept & 1)) ? 1u : 0u);
}

// ---- storage -> float ----------------------------------------------------------------------------------------------

__device__ inline float toFloat(float x) { return x; }
__device__ inline float toFloat(double x) { return (float)x; }
__device__ inline float toFloat(i1 x) { return x.bits ? 1.0f : 0.0f; }
__device__ inline float toFloat(bool x) { return x ? 1.0f : 0.0f; }
__device__ inline float toFloat(i8 x) { return (float)x; }
__device__ inline float toFloat(i16 x) { return (float)x; }
__device__ inline float toFloat(i32 x) { return (float)x; }
__device__ inline float toFloat(i64 x) { return (float)x; }
__device__ inline float toFloat(u8 x) { return (float)x; }
__device__ inline float toFloat(u16 x) { return (float)x; }
__device__ inline float toFloat(u32 x) { return (float)x; }
__device__ inline float toFloat(u64 x) { return (float)x; }
__device__ inline float toFloat(bf16 x) { return bitsToFloat((u32)x.bits << 16); }

__device__ inline float toFloat(f16 x) {
#ifdef __CUDA_ARCH__
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x.bits));
  return value;
#else
  u32 sign = (u32)(x.bits & 0x8000) << 16, magnitude = x.bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return bitsToFloat(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13)); // Inf, NaN
  return bitsToFloat(sign | floatBits(decodeMagnitude<5, 10>(magnitude)));
#endif
}

__device__ inline float toFloat(f8e4m3 x) {
  u32 sign = (u32)(x.bits & 0x80) << 24, magnitude = x.bits & 0x7fu;
  if (magnitude == 0x7fu) return bitsToFloat(sign | 0x7fc00000u); // the NaN
  return bitsToFloat(sign | floatBits(decodeMagnitude<4, 3>(magnitude)));
}

__device__ inline float toFloat(f8e5m2 x) {
  u32 sign = (u32)(x.bits & 0x80) << 24, magnitude = x.bits & 0x7fu;
  if (magnitude == 0x7cu) return bitsToFloat(sign | 0x7f800000u);
  if (magnitude > 0x7cu) return bitsToFloat(sign | 0x7fc00000u);
  return bitsToFloat(sign | floatBits(decodeMagnitude<5, 2>(magnitude)));
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define FUSOR_HAS_BF16_PAIRS
// Two floats rounded into one word, in one instruction (that for a single one has a sixteenth of its rate).
__device__ inline u32 bf16Pair(float low, float high) {
  u32 pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define FUSOR_HAS_FP8_PAIRS
// Two floats rounded into two FP8 bytes, saturating, in one instruction.
__device__ inline u16 e4m3Pair(float low, float high) {
  u16 pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
  return pair;
}
__device__ inline u16 e5m2Pair(float low, float high) {
  u16 pair;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
  return pair;
}
#endif

// ---- anything -> storage -------------------------------------------------------------------------------------------
// convert<T>(v): v is what load() gives for some storage type. One rounding; double -> small format goes through float
// (two roundings), as it does in the IR's reference.

template <class T> struct Converter;

template <class T> __device__ inline T integerFrom(double x, double lowest, double beyond) { // beyond = largest + 1
  if (!(x == x)) return (T)0;
  if (x >= beyond) return (T)(lowest < 0 ? ~((u64)1 << (sizeof(T) * 8 - 1)) : ~(u64)0);
  if (x <= lowest) return (T)(lowest < 0 ? (u64)1 << (sizeof(T) * 8 - 1) : 0);
  return (T)x;
}

#define FUSOR_INTEGER_CONVERTER(T, lowest, beyond)                                                                     \
  template <> struct Converter<T> {                                                                                    \
    static __device__ inline T from(float x) { return integerFrom<T>((double)x, lowest, beyond); }                     \
    static __device__ inline T from(double x) { return integerFrom<T>(x, lowest, beyond); }                            \
    template <class V> static __device__ inline T from(V x) { return (T)x; }                                           \
  };
FUSOR_INTEGER_CONVERTER(i8, -128.0, 128.0)
FUSOR_INTEGER_CONVERTER(i16, -32768.0, 32768.0)
FUSOR_INTEGER_CONVERTER(i32, -2147483648.0, 2147483648.0)
FUSOR_INTEGER_CONVERTER(i64, -9223372036854775808.0, 9223372036854775808.0)
FUSOR_INTEGER_CONVERTER(u8, 0.0, 256.0)
FUSOR_INTEGER_CONVERTER(u16, 0.0, 65536.0)
FUSOR_INTEGER_CONVERTER(u32, 0.0, 4294967296.0)
FUSOR_INTEGER_CONVERTER(u64, 0.0, 18446744073709551616.0)
#undef FUSOR_INTEGER_CONVERTER

template <> struct Converter<float> {
  template <class V> static __device__ inline float from(V x) { return (float)x; }
};
template <> struct Converter<double> {
  template <class V> static __device__ inline double from(V x) { return (double)x; }
};
template <> struct Converter<bool> {
  template <class V> static __device__ inline bool from(V x) { return x != (V)0; }
};
template <> struct Converter<i1> {
  template <class V> static __device__ inline i1 from(V x) { return i1{(u8)(x != (V)0 ? 1 : 0)}; }
};

template <> struct Converter<bf16> {
  template <class V> static __device__ inline bf16 from(V value) {
#ifdef FUSOR_HAS_BF16_PAIRS
    return bf16{(u16)bf16Pair((float)value, 0.0f)};
#else
    u32 bits = floatBits((float)value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return bf16{(u16)((bits >> 16) | 0x40u)}; // NaN stays NaN, quiet
    return bf16{(u16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
#endif
  }
};

template <> struct Converter<f16> {
  template <class V> static __device__ inline f16 from(V value) {
#ifdef __CUDA_ARCH__
    f16 rounded;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(rounded.bits) : "f"((float)value));
    return rounded;
#else
    u32 bits = floatBits((float)value), magnitude = bits & 0x7fffffffu;
    u16 sign = (u16)((bits >> 16) & 0x8000u);
    if (magnitude > 0x7f800000u) return f16{(u16)(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu))};
    u32 encoded = encodeMagnitude<5, 10>(magnitude);
    return f16{(u16)(sign | (encoded > 0x7c00u ? 0x7c00u : encoded))};
#endif
  }
};

template <> struct Converter<f8e4m3> {
  template <class V> static __device__ inline f8e4m3 from(V value) {
#ifdef FUSOR_HAS_FP8_PAIRS
    return f8e4m3{(u8)e4m3Pair((float)value, 0.0f)};
#else
    u32 bits = floatBits((float)value), magnitude = bits & 0x7fffffffu;
    u8 sign = (u8)((bits >> 24) & 0x80u);
    if (magnitude > 0x7f800000u) return f8e4m3{(u8)(sign | 0x7fu)};
    u32 encoded = encodeMagnitude<4, 3>(magnitude);
    return f8e4m3{(u8)(sign | (encoded > 0x7eu ? 0x7eu : encoded))};
#endif
  }
};

template <> struct Converter<f8e5m2> {
  template <class V> static __device__ inline f8e5m2 from(V value) {
#ifdef FUSOR_HAS_FP8_PAIRS
    return f8e5m2{(u8)e5m2Pair((float)value, 0.0f)};
#else
    u32 bits = floatBits((float)value), magnitude = bits & 0x7fffffffu;
    u8 sign = (u8)((bits >> 24) & 0x80u);
    if (magnitude > 0x7f800000u) return f8e5m2{(u8)(sign | 0x7fu)};
    u32 encoded = encodeMagnitude<5, 2>(magnitude);
    return f8e5m2{(u8)(sign | (encoded > 0x7bu ? 0x7bu : encoded))};
#endif
  }
};

template <class T, class V> __device__ inline T convert(V value) { return Converter<T>::from(value); }
template <class T> __device__ inline T fromFloat(float value) { return Converter<T>::from(value); }

// ---- memory --------------------------------------------------------------------------------------------------------

template <class T> struct Loader {
  static __device__ inline T from(T x) { return x; }
};
template <> struct Loader<i1> {
  static __device__ inline bool from(i1 x) { return x.bits != 0; }
};
template <> struct Loader<bf16> {
  static __device__ inline float from(bf16 x) { return toFloat(x); }
};
template <> struct Loader<f16> {
  static __device__ inline float from(f16 x) { return toFloat(x); }
};
template <> struct Loader<f8e4m3> {
  static __device__ inline float from(f8e4m3 x) { return toFloat(x); }
};
template <> struct Loader<f8e5m2> {
  static __device__ inline float from(f8e5m2 x) { return toFloat(x); }
};

// widen(x): a stored value as its compute value; load(p) and store(p, v) are the memory forms.
template <class T> __device__ inline ComputeOf<T> widen(T x) { return Loader<T>::from(x); }
template <class T> __device__ inline ComputeOf<T> load(const T *p) { return Loader<T>::from(*p); }
template <class T, class V> __device__ inline void store(T *p, V value) { *p = Converter<T>::from(value); }
// roundTo<T>(v): v as it reads back after being stored as T (the IR's rounding points inside a fused kernel).
template <class T> struct Rounder {
  template <class V> static __device__ inline ComputeOf<T> from(V value) { return widen(convert<T>(value)); }
};
#ifdef FUSOR_HAS_BF16_PAIRS
template <> struct Rounder<bf16> { // the high half of a float is its bf16
  template <class V> static __device__ inline float from(V value) { return bitsToFloat(bf16Pair(0.0f, (float)value)); }
};
#endif
template <class T, class V> __device__ inline ComputeOf<T> roundTo(V value) { return Rounder<T>::from(value); }
