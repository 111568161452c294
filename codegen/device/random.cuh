// needs: types.cuh
// The counter-based generator of ir/ops/counter_rng.h: two rounds of the finaliser of splitmix64. A number is a
// function of (seed, stream, element), so every device draws the same ones.
__device__ inline u64 rngMix(u64 z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}
__device__ inline u64 rngKey(u64 seed, u64 stream) { return rngMix(rngMix(seed + 0x9e3779b97f4a7c15ull) + stream); }
__device__ inline u64 rngBits(u64 key, u64 element) { return rngMix(key + (element + 1) * 0x9e3779b97f4a7c15ull); }
// In [0, 1), a multiple of 2^-24.
__device__ inline float rngUniform(u64 key, u64 element) {
  return (float)(rngBits(key, element) >> 40) * 5.9604644775390625e-8f;
}
