#include "ir/types/dtype.h"
#include "llvm/Support/ErrorHandling.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace fusor::ir {
namespace {

struct DTypeInfo {
  const char *name;
  unsigned bytes;
  int mantissaBits; // explicit bits of a narrow float
  int minExponent;  // of the smallest normal
  double max;
};

const DTypeInfo &info(DType type) {
  static constexpr DTypeInfo table[] = {
      {"f64", 8, 52, -1022, std::numeric_limits<double>::max()},
      {"f32", 4, 23, -126, std::numeric_limits<float>::max()},
      {"f16", 2, 10, -14, 65504},
      {"bf16", 2, 7, -126, 3.3895313892515355e38},
      {"f8e4m3", 1, 3, -6, 448},
      {"f8e5m2", 1, 2, -14, 57344},
      {"f8e8m0", 1, 0, -127, 1.7014118346046923e38},
      {"i64", 8, 0, 0, 9223372036854775807.0},
      {"i32", 4, 0, 0, 2147483647},
      {"i16", 2, 0, 0, 32767},
      {"i8", 1, 0, 0, 127},
      {"u64", 8, 0, 0, 18446744073709551615.0},
      {"u32", 4, 0, 0, 4294967295.0},
      {"u16", 2, 0, 0, 65535},
      {"u8", 1, 0, 0, 255},
      {"i1", 1, 0, 0, 1},
  };
  return table[static_cast<unsigned>(type)];
}

// Nearest-even rounding of a finite double to `mantissa` explicit bits with subnormals below 2^minExponent.
double roundMantissa(double value, int mantissa, int minExponent) {
  if (value == 0 || !std::isfinite(value)) return value;
  int exponent = std::max(std::ilogb(value), minExponent);
  double ulp = std::ldexp(1.0, exponent - mantissa);
  return std::nearbyint(value / ulp) * ulp; // exact: division and product by a power of two
}

double roundFloat(DType type, double value) {
  if (std::isnan(value)) return value;
  const DTypeInfo &t = info(type);
  if (type == DType::f8e8m0) { // a power of two, no sign, no zero
    if (!(value > 0)) return std::ldexp(1.0, -127);
    if (std::isinf(value)) return t.max; // frexp gives no exponent for it
    int exponent;
    double fraction = std::frexp(value, &exponent); // value = fraction * 2^exponent, fraction in [0.5, 1)
    return std::ldexp(1.0, std::clamp(fraction > 0.75 ? exponent : exponent - 1, -127, 127));
  }
  double rounded = roundMantissa(value, t.mantissaBits, t.minExponent);
  if (isFp8(type)) return std::clamp(rounded, -t.max, t.max);
  if (std::abs(rounded) > t.max) return std::copysign(std::numeric_limits<double>::infinity(), value);
  return rounded;
}

double roundInteger(DType type, double value) {
  if (std::isnan(value)) return 0;
  double low = isSigned(type) ? -info(type).max - 1 : 0;
  return std::clamp(std::trunc(value), low, info(type).max);
}

// Bits of a narrow float (sign, exponent, mantissa) from a value that is already rounded to it.
unsigned encodeNarrow(double value, int mantissa, int minExponent, unsigned signBit, unsigned nanBits,
                      unsigned infBits) {
  unsigned sign = std::signbit(value) ? signBit : 0;
  if (std::isnan(value)) return sign | nanBits;
  if (std::isinf(value)) return sign | infBits;
  value = std::abs(value);
  if (value == 0) return sign;
  int exponent = std::max(std::ilogb(value), minExponent);
  auto scaled = static_cast<unsigned>(std::ldexp(value, mantissa - exponent)); // includes the hidden bit of a normal
  unsigned biased = static_cast<unsigned>(exponent - minExponent + 1);
  if (scaled < (1u << mantissa)) return sign | scaled; // subnormal
  return sign | (biased << mantissa) | (scaled - (1u << mantissa));
}

double decodeNarrow(unsigned bits, int mantissa, int exponentBits, bool hasInf) {
  unsigned exponentMask = (1u << exponentBits) - 1;
  int bias = (1 << (exponentBits - 1)) - 1;
  unsigned fraction = bits & ((1u << mantissa) - 1), exponent = (bits >> mantissa) & exponentMask;
  bool negative = (bits >> (mantissa + exponentBits)) & 1;
  double value;
  if (hasInf && exponent == exponentMask)
    value = fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  else if (!hasInf && exponent == exponentMask && fraction == (1u << mantissa) - 1)
    value = std::numeric_limits<double>::quiet_NaN();
  else if (exponent == 0)
    value = std::ldexp(static_cast<double>(fraction), 1 - bias - mantissa);
  else
    value = std::ldexp(static_cast<double>(fraction | (1u << mantissa)), static_cast<int>(exponent) - bias - mantissa);
  return negative ? -value : value;
}

template <typename T> double loadAs(const void *data, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char *>(data) + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return static_cast<double>(value);
}
template <typename T> void storeAs(void *data, int64_t index, T value) {
  std::memcpy(static_cast<char *>(data) + index * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}
unsigned loadBits(const void *data, int64_t index, unsigned bytes) {
  return bytes == 2 ? static_cast<unsigned>(loadAs<uint16_t>(data, index))
                    : static_cast<unsigned>(loadAs<uint8_t>(data, index));
}

} // namespace

llvm::StringRef name(DType type) { return info(type).name; }

std::optional<DType> parseDType(llvm::StringRef text) {
  for (DType type : kAllDTypes)
    if (name(type) == text) return type;
  return std::nullopt;
}

unsigned byteSize(DType type) { return info(type).bytes; }
double maxFinite(DType type) { return info(type).max; }

double roundTo(DType type, double value) {
  if (type == DType::f64) return value;
  if (type == DType::f32) return static_cast<double>(static_cast<float>(value));
  if (type == DType::i1) return value != 0;
  return isFloat(type) ? roundFloat(type, value) : roundInteger(type, value);
}

double roundUnsaturated(DType type, double value) {
  if (type != DType::f8e4m3 && type != DType::f8e5m2) return roundTo(type, value);
  const DTypeInfo &t = info(type);
  if (std::isnan(value) || std::abs(roundMantissa(value, t.mantissaBits, t.minExponent)) <= t.max)
    return roundTo(type, value);
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
  return std::copysign(type == DType::f8e5m2 ? kInf : kNaN, value);
}

double loadElement(DType type, const void *data, int64_t index) {
  switch (type) {
  case DType::f64: return loadAs<double>(data, index);
  case DType::f32: return loadAs<float>(data, index);
  case DType::f16: return decodeNarrow(loadBits(data, index, 2), 10, 5, true);
  case DType::bf16: return std::bit_cast<float>(loadBits(data, index, 2) << 16);
  case DType::f8e4m3: return decodeNarrow(loadBits(data, index, 1), 3, 4, false);
  case DType::f8e5m2: return decodeNarrow(loadBits(data, index, 1), 2, 5, true);
  case DType::f8e8m0: {
    unsigned bits = loadBits(data, index, 1);
    return bits == 255 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, static_cast<int>(bits) - 127);
  }
  case DType::i64: return loadAs<int64_t>(data, index);
  case DType::i32: return loadAs<int32_t>(data, index);
  case DType::i16: return loadAs<int16_t>(data, index);
  case DType::i8: return loadAs<int8_t>(data, index);
  case DType::u64: return loadAs<uint64_t>(data, index);
  case DType::u32: return loadAs<uint32_t>(data, index);
  case DType::u16: return loadAs<uint16_t>(data, index);
  case DType::u8: return loadAs<uint8_t>(data, index);
  case DType::i1: return loadAs<uint8_t>(data, index) != 0;
  }
  llvm_unreachable("every dtype is handled above");
}

void storeElement(DType type, void *data, int64_t index, double value) {
  double v = type == DType::f8e5m2 && std::isinf(value) ? value : roundTo(type, value);
  switch (type) {
  case DType::f64: return storeAs<double>(data, index, v);
  case DType::f32: return storeAs<float>(data, index, static_cast<float>(v));
  case DType::f16: return storeAs<uint16_t>(data, index, encodeNarrow(v, 10, -14, 0x8000, 0x7e00, 0x7c00));
  case DType::bf16: return storeAs<uint16_t>(data, index, encodeNarrow(v, 7, -126, 0x8000, 0x7fc0, 0x7f80));
  case DType::f8e4m3: return storeAs<uint8_t>(data, index, encodeNarrow(v, 3, -6, 0x80, 0x7f, 0x7f));
  case DType::f8e5m2: return storeAs<uint8_t>(data, index, encodeNarrow(v, 2, -14, 0x80, 0x7e, 0x7c));
  case DType::f8e8m0:
    return storeAs<uint8_t>(data, index, std::isnan(v) ? 255 : static_cast<uint8_t>(std::ilogb(v) + 127));
  // 2^63 and 2^64 as doubles are one past the last value: saturate on the integer side.
  case DType::i64:
    return storeAs<int64_t>(data, index,
                            v >= 9223372036854775808.0 ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(v));
  case DType::u64:
    return storeAs<uint64_t>(
        data, index, v >= 18446744073709551616.0 ? std::numeric_limits<uint64_t>::max() : static_cast<uint64_t>(v));
  case DType::i32: return storeAs<int32_t>(data, index, static_cast<int32_t>(v));
  case DType::i16: return storeAs<int16_t>(data, index, static_cast<int16_t>(v));
  case DType::i8: return storeAs<int8_t>(data, index, static_cast<int8_t>(v));
  case DType::u32: return storeAs<uint32_t>(data, index, static_cast<uint32_t>(v));
  case DType::u16: return storeAs<uint16_t>(data, index, static_cast<uint16_t>(v));
  case DType::u8:
  case DType::i1: return storeAs<uint8_t>(data, index, static_cast<uint8_t>(v));
  }
}

} // namespace fusor::ir
