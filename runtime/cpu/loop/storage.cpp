#include "runtime/cpu/loop/storage.h"
#include <algorithm>
#include <cstring>

namespace fusor::runtime {

using ir::DType;

namespace {

template <typename T> const T *at(const void *data, int64_t index) { return static_cast<const T *>(data) + index; }
template <typename T> T *at(void *data, int64_t index) { return static_cast<T *>(data) + index; }

// A dtype without its own loop, or elements that are not neighbours: gathered into a small buffer first.
template <typename T> void copyStrided(const T *from, int64_t fromStride, T *to, int64_t toStride, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i * toStride] = from[i * fromStride];
}
void copyStrided(unsigned bytes, const char *from, int64_t fromStride, char *to, int64_t toStride, int64_t n) {
  switch (bytes) {
  case 1: return copyStrided(at<uint8_t>(from, 0), fromStride, at<uint8_t>(to, 0), toStride, n);
  case 2: return copyStrided(at<uint16_t>(from, 0), fromStride, at<uint16_t>(to, 0), toStride, n);
  case 4: return copyStrided(at<uint32_t>(from, 0), fromStride, at<uint32_t>(to, 0), toStride, n);
  default: return copyStrided(at<uint64_t>(from, 0), fromStride, at<uint64_t>(to, 0), toStride, n);
  }
}
constexpr int64_t kStaged = 256;

template <typename T> void loadIntegers(const void *data, int64_t first, double *lanes, int64_t n) {
  for (int64_t i = 0; i < n; ++i) lanes[i] = static_cast<double>(at<T>(data, first)[i]);
}
// Rounded values are in T's range but for the end of 64-bit types, where the double is one past it.
template <typename T> void storeIntegers(const double *lanes, void *data, int64_t first, int64_t n) {
  if constexpr (sizeof(T) == 8)
    for (int64_t i = 0; i < n; ++i)
      ir::storeElement(std::is_signed_v<T> ? DType::i64 : DType::u64, data, first + i, lanes[i]);
  else
    for (int64_t i = 0; i < n; ++i) at<T>(data, first)[i] = static_cast<T>(lanes[i]);
}

void loadNeighbours(const lanes::Kernels &k, DType type, const void *data, int64_t first, void *lanes, int64_t n) {
  auto *f = static_cast<float *>(lanes);
  auto *d = static_cast<double *>(lanes);
  switch (type) {
  case DType::f32: std::memcpy(f, at<float>(data, first), n * 4); return;
  case DType::f64: std::memcpy(d, at<double>(data, first), n * 8); return;
  case DType::bf16: return k.convert.bf16ToF32(at<uint16_t>(data, first), f, n);
  case DType::f16: return k.convert.f16.decode(at<uint16_t>(data, first), f, n);
  case DType::f8e4m3: return k.convert.e4m3.decode(at<uint8_t>(data, first), f, n);
  case DType::f8e5m2: return k.convert.e5m2.decode(at<uint8_t>(data, first), f, n);
  case DType::i1: return k.convert.boolToF32(at<uint8_t>(data, first), f, n);
  case DType::i32: return k.convert.i32ToF64(at<int32_t>(data, first), d, n);
  case DType::i64: return k.convert.i64ToF64(at<int64_t>(data, first), d, n);
  case DType::i16: return loadIntegers<int16_t>(data, first, d, n);
  case DType::i8: return loadIntegers<int8_t>(data, first, d, n);
  case DType::u64: return loadIntegers<uint64_t>(data, first, d, n);
  case DType::u32: return loadIntegers<uint32_t>(data, first, d, n);
  case DType::u16: return loadIntegers<uint16_t>(data, first, d, n);
  case DType::u8: return loadIntegers<uint8_t>(data, first, d, n);
  case DType::f8e8m0:
    for (int64_t i = 0; i < n; ++i) f[i] = static_cast<float>(ir::loadElement(type, data, first + i));
    return;
  }
}

void storeNeighbours(const lanes::Kernels &k, DType type, const void *lanes, void *data, int64_t first, int64_t n) {
  const auto *f = static_cast<const float *>(lanes);
  const auto *d = static_cast<const double *>(lanes);
  switch (type) {
  case DType::f32: std::memcpy(at<float>(data, first), f, n * 4); return;
  case DType::f64: std::memcpy(at<double>(data, first), d, n * 8); return;
  case DType::bf16: return k.convert.f32ToBf16(f, at<uint16_t>(data, first), n);
  case DType::f16: return k.convert.f16.encode(f, at<uint16_t>(data, first), n);
  case DType::f8e4m3: return k.convert.e4m3.encode(f, at<uint8_t>(data, first), n);
  case DType::f8e5m2: return k.convert.e5m2.encode(f, at<uint8_t>(data, first), n);
  case DType::i1: return k.convert.f32ToBool(f, at<uint8_t>(data, first), n);
  case DType::i32: return storeIntegers<int32_t>(d, data, first, n);
  case DType::i64: return storeIntegers<int64_t>(d, data, first, n);
  case DType::i16: return storeIntegers<int16_t>(d, data, first, n);
  case DType::i8: return storeIntegers<int8_t>(d, data, first, n);
  case DType::u64: return storeIntegers<uint64_t>(d, data, first, n);
  case DType::u32: return storeIntegers<uint32_t>(d, data, first, n);
  case DType::u16: return storeIntegers<uint16_t>(d, data, first, n);
  case DType::u8: return storeIntegers<uint8_t>(d, data, first, n);
  case DType::f8e8m0:
    for (int64_t i = 0; i < n; ++i) ir::storeElement(type, data, first + i, f[i]);
    return;
  }
}

} // namespace

void loadLanes(const lanes::Kernels &k, DType type, const void *data, int64_t first, int64_t stride, void *lanes,
               int64_t n) {
  if (stride == 1 || n == 1) return loadNeighbours(k, type, data, first, lanes, n);
  if (type == DType::f32) return k.f32.gatherStrided(at<float>(data, first), stride, static_cast<float *>(lanes), n);
  alignas(64) char staged[kStaged * 8];
  unsigned bytes = ir::byteSize(type);
  for (int64_t done = 0; done < n; done += kStaged) {
    int64_t count = std::min(kStaged, n - done);
    copyStrided(bytes, static_cast<const char *>(data) + (first + done * stride) * bytes, stride, staged, 1, count);
    loadNeighbours(k, type, staged, 0, static_cast<char *>(lanes) + done * laneBytes(laneOf(type)), count);
  }
}

void storeLanes(const lanes::Kernels &k, DType type, const void *lanes, void *data, int64_t first, int64_t stride,
                int64_t n) {
  if (stride == 1 || n == 1) return storeNeighbours(k, type, lanes, data, first, n);
  alignas(64) char staged[kStaged * 8];
  unsigned bytes = ir::byteSize(type);
  for (int64_t done = 0; done < n; done += kStaged) {
    int64_t count = std::min(kStaged, n - done);
    storeNeighbours(k, type, static_cast<const char *>(lanes) + done * laneBytes(laneOf(type)), staged, 0, count);
    copyStrided(bytes, staged, 1, static_cast<char *>(data) + (first + done * stride) * bytes, stride, count);
  }
}

void roundLanes(const lanes::Kernels &k, DType type, const void *x, void *y, int64_t n, bool saturates) {
  const auto *f = static_cast<const float *>(x);
  auto *g = static_cast<float *>(y);
  switch (type) {
  case DType::bf16: return k.convert.roundToBf16(f, g, n);
  case DType::f16: return k.convert.f16.round(f, g, n);
  case DType::f8e4m3: return (saturates ? k.convert.e4m3.round : k.convert.e4m3.roundUnsaturated)(f, g, n);
  case DType::f8e5m2: return (saturates ? k.convert.e5m2.round : k.convert.e5m2.roundUnsaturated)(f, g, n);
  case DType::f32:
    if (x != y) std::memcpy(y, x, n * 4);
    return;
  case DType::f64:
    if (x != y) std::memcpy(y, x, n * 8);
    return;
  case DType::i1:
    for (int64_t i = 0; i < n; ++i) g[i] = f[i] != 0;
    return;
  case DType::f8e8m0:
    for (int64_t i = 0; i < n; ++i) g[i] = static_cast<float>(ir::roundTo(type, f[i]));
    return;
  default: // integers
    for (int64_t i = 0; i < n; ++i) static_cast<double *>(y)[i] = ir::roundTo(type, static_cast<const double *>(x)[i]);
    return;
  }
}

} // namespace fusor::runtime
