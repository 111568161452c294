// FP8 as its definition says it: all magnitudes enumerated, the nearest one looked for, ties to the even code, larger
// ones saturated (or Inf, and NaN in E4M3), NaN kept. And the f32 inputs that conversions are tested with.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace fusor::tests {

class Fp8Definition {
public:
  explicit Fp8Definition(bool isE5m2, bool saturates = true) : mantissaBits_(isE5m2 ? 2 : 3), saturates_(saturates) {
    int bias = isE5m2 ? 15 : 7, top = isE5m2 ? 0x7b : 0x7e;
    for (int code = 0; code <= top + 1; ++code) { // one more: where rounding would go next
      int exponent = code >> mantissaBits_, mantissa = code & ((1 << mantissaBits_) - 1);
      magnitudes_.push_back(exponent ? std::ldexp((1 << mantissaBits_) + mantissa, exponent - bias - mantissaBits_)
                                     : std::ldexp(mantissa, 1 - bias - mantissaBits_));
    }
  }
  double largest() const { return magnitudes_[magnitudes_.size() - 2]; }
  bool isNaN(uint8_t code) const { return mantissaBits_ == 3 ? (code & 0x7f) == 0x7f : (code & 0x7f) > 0x7c; }

  /// Whether `code` is what `value` becomes; any NaN is one.
  bool is(uint8_t code, float value) const { return std::isnan(value) ? isNaN(code) : code == encoded(value); }
  uint8_t encoded(float value) const {
    double size = std::fabs(static_cast<double>(value));
    size_t high = std::lower_bound(magnitudes_.begin(), magnitudes_.end(), size) - magnitudes_.begin();
    size_t last = magnitudes_.size() - 2, code = high;
    if (high <= last + 1 && high > 0 && magnitudes_[high] != size) {
      double below = size - magnitudes_[high - 1], above = magnitudes_[high] - size;
      code = below < above || (below == above && high % 2 == 1) ? high - 1 : high;
    }
    return static_cast<uint8_t>(std::min(code, saturates_ ? last : last + 1) | (std::signbit(value) ? 0x80 : 0));
  }

private:
  int mantissaBits_;
  bool saturates_;
  std::vector<double> magnitudes_;
};

/// All 65,536 bit patterns of bf16, as f32.
inline std::vector<float> everyBf16() {
  std::vector<float> values(65536);
  for (uint32_t i = 0; i < values.size(); ++i) {
    uint32_t bits = i << 16;
    std::memcpy(&values[i], &bits, 4);
  }
  return values;
}

/// 2^20 bit patterns of f32: a half from all of them, a half where FP8's steps are, around halves of a step too.
inline std::vector<float> sampledF32() {
  std::vector<float> values(1 << 20);
  uint64_t state = 0x9e3779b97f4a7c15;
  for (uint32_t i = 0; i < values.size(); ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    auto bits = static_cast<uint32_t>(state >> 32);
    if (i % 2) {
      uint32_t exponent = 127 - 20 + (bits >> 8) % 40;                     // 2^-20 to 2^19
      uint32_t mantissa = i % 4 == 1 ? bits >> 9 : (bits >> 9) & 0x780000; // any; multiples of a sixteenth,
      mantissa += i % 8 == 7 ? 1 : i % 8 == 3 ? 0x7fffffu : 0;             // and their neighbours
      bits = (bits & 0x80000000u) | exponent << 23 | (mantissa & 0x7fffffu);
    }
    std::memcpy(&values[i], &bits, 4);
  }
  return values;
}

} // namespace fusor::tests
