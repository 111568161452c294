// What the tests of the device library share: a library text with test kernels compiled once, and the conversions of
// codegen/device/types.cuh written the slow, obvious way in double precision.
#pragma once

#include "codegen/device/embedded.h"
#include "tests/support/test_emulator.h"
#include "llvm/Support/Error.h"
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace fusor::codegen::tests {

using emulator::EmulatedModule;
using emulator::Emulator;
using emulator::GuardedBuffer;

// The named device files followed by `kernels`, compiled for the host.
inline EmulatedModule compileWithDevice(llvm::ArrayRef<llvm::StringRef> files, llvm::StringRef kernels) {
  return llvm::cantFail(fusor::tests::testEmulator().compile(deviceLibrary(files) + kernels.str()));
}

inline std::string messageOf(llvm::Error error) { return llvm::toString(std::move(error)); }

// A small floating-point format. Its finite magnitudes are enumerated from the definition, so encode() below needs no
// bit tricks.
struct Format {
  int exponentBits, mantissaBits;
  bool hasInfinity; // E4M3 has none: its all-ones exponent is finite but for the one NaN
  bool saturates;

  int bits() const { return 1 + exponentBits + mantissaBits; }
  uint32_t largestFinite() const { // magnitude bits
    uint32_t infinity = ((1u << exponentBits) - 1) << mantissaBits;
    return hasInfinity ? infinity - 1 : (1u << (exponentBits + mantissaBits)) - 2;
  }
  double magnitude(uint32_t bits) const {
    int bias = (1 << (exponentBits - 1)) - 1;
    int exponent = static_cast<int>(bits >> mantissaBits);
    double mantissa = bits & ((1u << mantissaBits) - 1);
    return exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissaBits)
                         : std::ldexp(mantissa + (1 << mantissaBits), exponent - bias - mantissaBits);
  }
  double decode(uint32_t bits) const {
    uint32_t sign = bits >> (exponentBits + mantissaBits), rest = bits & ((1u << (exponentBits + mantissaBits)) - 1);
    double value = rest <= largestFinite()                      ? magnitude(rest)
                   : hasInfinity && rest == largestFinite() + 1 ? std::numeric_limits<double>::infinity()
                                                                : std::numeric_limits<double>::quiet_NaN();
    return sign ? -value : value;
  }
  // Nearest representable magnitude, ties to the even code; above the largest finite + half a step: Inf or saturated.
  uint32_t encodeMagnitude(double value) const {
    uint32_t low = 0, high = largestFinite() + 1; // the code after the largest stands for the next power step
    while (low + 1 < high) {
      uint32_t middle = (low + high) / 2;
      (magnitude(middle) <= value ? low : high) = middle;
    }
    double below = value - magnitude(low), above = magnitude(high) - value;
    uint32_t code = below < above || (below == above && low % 2 == 0) ? low : high;
    if (std::isinf(value)) code = largestFinite() + 1;
    return code > largestFinite() && saturates ? largestFinite() : code;
  }
};
inline constexpr Format kBf16 = {8, 7, true, false}, kF16 = {5, 10, true, false}, kE4M3 = {4, 3, false, true},
                        kE5M2 = {5, 2, true, true};

inline double roundedTo(const Format &format, double value) {
  return std::copysign(format.magnitude(format.encodeMagnitude(std::fabs(value))), value);
}

// Normally distributed, the same every run.
inline std::vector<float> randomValues(size_t count, unsigned seed, float scale = 1) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(count);
  for (float &value : values) value = normal(engine);
  return values;
}

} // namespace fusor::codegen::tests
