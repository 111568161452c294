// The counter-based generator behind dropout and initial values: two rounds of a 64-bit mixer (the finaliser of
// splitmix64). codegen/device has the same function for kernels; a test compares the two.
#pragma once
#include <cmath>
#include <cstdint>

namespace fusor::ir {

inline uint64_t rngMix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

inline uint64_t rngKey(uint64_t seed, uint64_t stream) { return rngMix(rngMix(seed + 0x9e3779b97f4a7c15ull) + stream); }

inline uint64_t rngBits(uint64_t key, uint64_t element) { return rngMix(key + (element + 1) * 0x9e3779b97f4a7c15ull); }

/// In [0, 1), a multiple of 2^-24: exact in f32.
inline float rngUniform(uint64_t key, uint64_t element) {
  return static_cast<float>(rngBits(key, element) >> 40) * 5.9604644775390625e-8f;
}

/// A standard normal by Box and Muller in double, from the two halves of one draw.
inline double rngNormal(uint64_t key, uint64_t element) {
  uint64_t bits = rngBits(key, element);
  double u = (static_cast<double>(bits >> 32) + 1.0) * 0x1p-32, v = static_cast<double>(bits & 0xffffffffull) * 0x1p-32;
  return std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586477 * v);
}

} // namespace fusor::ir
