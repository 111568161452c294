// CUDA, as far as the simt tier needs it, as host C++. Force-included before the kernel text when the emulator compiles
// it; it is never part of a test binary. Blocks run one after another, so __shared__ is a static (where
// AddressSanitizer sees an overflow) and atomics are plain read-modify-writes.
//
// A kernel that needs something missing here does not compile: add it here, with a test in tests/codegen/emulator_test.
#pragma once
#define FUSOR_EMULATOR 1
#include "runtime/emulator/hooks.h"
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

extern "C" {
fusor::emulator::Lane *fusor_emulator_lane = nullptr;         // set before each resume
const fusor::emulator::Hooks *fusor_emulator_hooks = nullptr; // set once, after dlopen
}

// ---- keywords ------------------------------------------------------------------------------------------------------
#define __global__
#define __device__
#define __host__
#define __constant__
#define __shared__ static
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) alignas(n)

#define threadIdx (fusor_emulator_lane->threadIndex)
#define blockIdx (fusor_emulator_lane->blockIndex)
#define blockDim (fusor_emulator_lane->blockShape)
#define gridDim (fusor_emulator_lane->gridShape)
constexpr int warpSize = 32;

// ---- vector types --------------------------------------------------------------------------------------------------
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) double2 {
  double x, y;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

namespace fusor::emulator {

template <class To, class From> To bitCast(const From &from) {
  static_assert(sizeof(To) <= sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(To));
  return to;
}
template <class T> unsigned long long packed(const T &value) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>, "a shuffle moves at most 8 bytes");
  unsigned long long bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

// The value of `source` as exchanged under `mask`; the lane's own value where the source lies outside its segment.
template <class T> T shuffle(unsigned mask, T value, int source, bool inside, int line) {
  const unsigned long long *values = fusor_emulator_hooks->exchange(WarpOp::Shuffle, mask, packed(value), line);
  if (!inside) return value;
  if (!((mask >> source) & 1)) fusor_emulator_hooks->fail("a shuffle reads a lane that is not in its mask", line);
  return bitCast<T>(values[source]);
}
template <class T> T shuffleIndex(unsigned mask, T value, int source, int width, int line) {
  int segment = int(fusor_emulator_lane->index) / width * width;
  return shuffle(mask, value, segment + (source & (width - 1)), true, line);
}
template <class T> T shuffleXor(unsigned mask, T value, int laneMask, int width, int line) {
  int lane = int(fusor_emulator_lane->index), source = lane ^ laneMask;
  return shuffle(mask, value, source, source < lane / width * width + width, line);
}
template <class T> T shuffleUp(unsigned mask, T value, int delta, int width, int line) {
  int lane = int(fusor_emulator_lane->index), source = lane - delta;
  return shuffle(mask, value, source, source >= lane / width * width, line);
}
template <class T> T shuffleDown(unsigned mask, T value, int delta, int width, int line) {
  int lane = int(fusor_emulator_lane->index), source = lane + delta;
  return shuffle(mask, value, source, source < lane / width * width + width, line);
}
inline unsigned ballot(unsigned mask, bool predicate, int line) {
  const unsigned long long *values = fusor_emulator_hooks->exchange(WarpOp::Ballot, mask, predicate, line);
  unsigned result = 0;
  for (int lane = 0; lane < 32; ++lane)
    if ((mask >> lane) & 1) result |= unsigned(values[lane]) << lane;
  return result;
}
constexpr int widthOr32(int width = 32) { return width; }

template <class T, class Update> T atomically(T *address, Update update) {
  T old = *address;
  *address = update(old);
  return old;
}

template <class... Parameters, unsigned... kIndex>
void call(void (*kernel)(Parameters...), void **arguments, std::integer_sequence<unsigned, kIndex...>) {
  kernel(*static_cast<std::remove_reference_t<Parameters> *>(arguments[kIndex])...);
}
void forgetCopies(); // shim_mma.h: what an earlier block of this thread left in flight
void expectNoCopies();
// What cuLaunchKernel does with kernelParams: arguments[i] points at the value of parameter i.
template <class... Parameters> void launch(void (*kernel)(Parameters...), void **arguments) {
  forgetCopies();
  call(kernel, arguments, std::make_integer_sequence<unsigned, sizeof...(Parameters)>());
  expectNoCopies();
}

} // namespace fusor::emulator

// ---- synchronisation and exchange: macros, so that a report can name the line
// -----------------------------------------
#define __syncthreads() (fusor_emulator_hooks->blockBarrier(__LINE__))
#define __syncwarp(...)                                                                                                \
  ((void)fusor_emulator_hooks->exchange(fusor::emulator::WarpOp::Sync, fusor::emulator::maskOrAll(__VA_ARGS__), 0,     \
                                        __LINE__))
#define __shfl_sync(mask, value, lane, ...)                                                                            \
  (fusor::emulator::shuffleIndex(mask, value, lane, fusor::emulator::widthOr32(__VA_ARGS__), __LINE__))
#define __shfl_xor_sync(mask, value, laneMask, ...)                                                                    \
  (fusor::emulator::shuffleXor(mask, value, laneMask, fusor::emulator::widthOr32(__VA_ARGS__), __LINE__))
#define __shfl_up_sync(mask, value, delta, ...)                                                                        \
  (fusor::emulator::shuffleUp(mask, value, delta, fusor::emulator::widthOr32(__VA_ARGS__), __LINE__))
#define __shfl_down_sync(mask, value, delta, ...)                                                                      \
  (fusor::emulator::shuffleDown(mask, value, delta, fusor::emulator::widthOr32(__VA_ARGS__), __LINE__))
#define __ballot_sync(mask, predicate) (fusor::emulator::ballot(mask, (predicate) != 0, __LINE__))
#define __any_sync(mask, predicate) (int(fusor::emulator::ballot(mask, (predicate) != 0, __LINE__) != 0))
#define __all_sync(mask, predicate) (int(fusor::emulator::ballot(mask, (predicate) == 0, __LINE__) == 0))
namespace fusor::emulator {
constexpr unsigned maskOrAll(unsigned mask = 0xffffffffu) { return mask; }
} // namespace fusor::emulator
inline void __threadfence() {}
inline void __threadfence_block() {}

// ---- intrinsics
// ------------------------------------------------------------------------------------------------------
inline unsigned __float_as_uint(float x) { return fusor::emulator::bitCast<unsigned>(x); }
inline int __float_as_int(float x) { return fusor::emulator::bitCast<int>(x); }
inline float __uint_as_float(unsigned x) { return fusor::emulator::bitCast<float>(x); }
inline float __int_as_float(int x) { return fusor::emulator::bitCast<float>(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(unsigned(x)); }
inline float rsqrtf(float x) { return float(1.0 / std::sqrt(double(x))); } // CUDA's is within 2 ulp of this
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
template <class T> T __ldg(const T *p) { return *p; }

template <class T> T atomicAdd(T *address, std::common_type_t<T> value) {
  return fusor::emulator::atomically(address, [&](T old) { return T(old + value); });
}
template <class T> T atomicMax(T *address, std::common_type_t<T> value) {
  return fusor::emulator::atomically(address, [&](T old) { return old > value ? old : value; });
}
template <class T> T atomicMin(T *address, std::common_type_t<T> value) {
  return fusor::emulator::atomically(address, [&](T old) { return old < value ? old : value; });
}
template <class T> T atomicExch(T *address, std::common_type_t<T> value) {
  return fusor::emulator::atomically(address, [&](T) { return value; });
}
template <class T> T atomicCAS(T *address, std::common_type_t<T> expected, std::common_type_t<T> value) {
  return fusor::emulator::atomically(address, [&](T old) { return old == expected ? value : old; });
}

#include "runtime/emulator/shim_mma.h"
