// needs: types.cuh
// The two FP8 formats as storage types whose conversion does not saturate: what rounds to more than the largest becomes
// Inf in E5M2 and NaN in E4M3, which has no infinity. There is no instruction for it. Memory is as that of f8e5m2 and
// f8e4m3; an f8e5m2 that was loaded or chosen, not converted, is stored as f8e5m2_inf too: an Inf stays one.
struct f8e4m3_nan {
  u8 bits;
};
struct f8e5m2_inf {
  u8 bits;
};
template <> struct ComputeTrait<f8e4m3_nan> { typedef float type; };
template <> struct ComputeTrait<f8e5m2_inf> { typedef float type; };

template <> struct Converter<f8e4m3_nan> {
  template <class V> static __device__ inline f8e4m3_nan from(V value) {
    u32 bits = floatBits((float)value), magnitude = bits & 0x7fffffffu;
    u32 encoded = magnitude >= 0x7f800000u ? 0x7fu : encodeMagnitude<4, 3>(magnitude);
    return f8e4m3_nan{(u8)(((bits >> 24) & 0x80u) | (encoded > 0x7eu ? 0x7fu : encoded))};
  }
};
template <> struct Converter<f8e5m2_inf> {
  template <class V> static __device__ inline f8e5m2_inf from(V value) {
    u32 bits = floatBits((float)value), magnitude = bits & 0x7fffffffu;
    u32 encoded = magnitude > 0x7f800000u ? 0x7fu : magnitude == 0x7f800000u ? 0x7cu : encodeMagnitude<5, 2>(magnitude);
    u32 kept = magnitude <= 0x7f800000u && encoded > 0x7cu ? 0x7cu : encoded;
    return f8e5m2_inf{(u8)(((bits >> 24) & 0x80u) | kept)};
  }
};
template <> struct Loader<f8e4m3_nan> {
  static __device__ inline float from(f8e4m3_nan x) { return toFloat(f8e4m3{x.bits}); }
};
template <> struct Loader<f8e5m2_inf> {
  static __device__ inline float from(f8e5m2_inf x) { return toFloat(f8e5m2{x.bits}); }
};
