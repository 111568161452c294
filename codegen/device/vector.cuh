// needs: types.cuh
// Several consecutive elements in one access. An aligned group of kCount elements of T moves as one 16-, 8-, 4- or
// 2-byte word (or several 16-byte ones); the values on the compute side are ComputeOf<T>: float for bf16, f16 and fp8.
//
//   float v[8];
//   loadVector(x + i, v);       // x + i must be aligned to the word: vectorAligned<T, 8>(x + i)
//   storeVector(y + i, v);    // both: global memory alone
//
//   VectorBits<bf16, 8> ahead;
//   fetchVector(x + i, ahead);  // starts the load,
//   unpack(ahead, v);           // waits for it

// Bytes of the word that kCount elements of T move in, at most 16.
template <class T, int kCount> struct VectorWord {
  static constexpr int kBytes = sizeof(T) * kCount % 16 == 0  ? 16
                                : sizeof(T) * kCount % 8 == 0 ? 8
                                : sizeof(T) * kCount % 4 == 0 ? 4
                                : sizeof(T) * kCount % 2 == 0 ? 2
                                                              : 1;
  static constexpr int kWords = sizeof(T) * kCount / kBytes;
};

template <int kBytes> struct WordOf;
template <> struct WordOf<16> { typedef uint4 type; };
template <> struct WordOf<8> { typedef uint2 type; };
template <> struct WordOf<4> { typedef u32 type; };
template <> struct WordOf<2> { typedef u16 type; };
template <> struct WordOf<1> { typedef u8 type; };

template <class T, int kCount> using VectorOf = typename WordOf<VectorWord<T, kCount>::kBytes>::type;

template <class T, int kCount> __device__ inline bool vectorAligned(const void *p) {
  return (u64)p % VectorWord<T, kCount>::kBytes == 0;
}

// A vector between memory and arithmetic.
template <class T, int kCount> union VectorBits {
  VectorOf<T, kCount> words[VectorWord<T, kCount>::kWords];
  T elements[kCount];
  u32 pairs[(kCount + 1) / 2];     // of bf16: element 2i in the low half
  u16 bytePairs[(kCount + 1) / 2]; // of FP8: likewise
};

template <class T, int kCount>
__device__ inline void unpack(const VectorBits<T, kCount> &raw, ComputeOf<T> (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = widen(raw.elements[i]);
}
// The high half of a float is its bf16.
template <int kCount> __device__ inline void unpack(const VectorBits<bf16, kCount> &raw, float (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount / 2; ++i) {
    values[2 * i] = bitsToFloat(raw.pairs[i] << 16);
    values[2 * i + 1] = bitsToFloat(raw.pairs[i] & 0xffff0000u);
  }
  if (kCount % 2) values[kCount - 1] = widen(raw.elements[kCount - 1]);
}

template <class T, class V, int kCount>
__device__ inline void pack(VectorBits<T, kCount> &raw, const V (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) raw.elements[i] = convert<T>(values[i]);
}
#ifdef FUSOR_HAS_BF16_PAIRS
template <int kCount> __device__ inline void pack(VectorBits<bf16, kCount> &raw, const float (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount / 2; ++i) raw.pairs[i] = bf16Pair(values[2 * i], values[2 * i + 1]);
  if (kCount % 2) raw.elements[kCount - 1] = convert<bf16>(values[kCount - 1]);
}
#endif

#ifdef FUSOR_HAS_FP8_PAIRS
template <int kCount> __device__ inline void pack(VectorBits<f8e4m3, kCount> &raw, const float (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount / 2; ++i) raw.bytePairs[i] = e4m3Pair(values[2 * i], values[2 * i + 1]);
  if (kCount % 2) raw.elements[kCount - 1] = convert<f8e4m3>(values[kCount - 1]);
}
template <int kCount> __device__ inline void pack(VectorBits<f8e5m2, kCount> &raw, const float (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount / 2; ++i) raw.bytePairs[i] = e5m2Pair(values[2 * i], values[2 * i + 1]);
  if (kCount % 2) raw.elements[kCount - 1] = convert<f8e5m2>(values[kCount - 1]);
}
#endif

// Words of 16 bytes in global memory as PTX, which the compiler can neither split nor put off until their first use:
// all loads of a loop's turn are on their way before it computes. Shared memory: readVector.
template <class Word> __device__ inline Word loadWord(const Word *p) { return *p; }
template <class Word> __device__ inline void storeWord(Word *p, Word word) { *p = word; }
#ifdef __CUDA_ARCH__
__device__ inline uint4 loadWord(const uint4 *p) {
  uint4 w;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w) : "l"(p));
  return w;
}
__device__ inline void storeWord(uint4 *p, uint4 w) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(w.x), "r"(w.y), "r"(w.z), "r"(w.w));
}
#endif

template <class T, int kCount> __device__ inline void fetchVector(const T *p, VectorBits<T, kCount> &raw) {
#pragma unroll
  for (int i = 0; i < VectorWord<T, kCount>::kWords; ++i) raw.words[i] = loadWord((const VectorOf<T, kCount> *)p + i);
}

template <class T, int kCount> __device__ inline void loadVector(const T *p, ComputeOf<T> (&values)[kCount]) {
  VectorBits<T, kCount> raw;
  fetchVector(p, raw);
  unpack(raw, values);
}

// The same from shared memory.
template <class T, int kCount> __device__ inline void readVector(const T *p, ComputeOf<T> (&values)[kCount]) {
  VectorBits<T, kCount> raw;
#pragma unroll
  for (int i = 0; i < VectorWord<T, kCount>::kWords; ++i) raw.words[i] = ((const VectorOf<T, kCount> *)p)[i];
  unpack(raw, values);
}

template <class T, class V, int kCount> __device__ inline void storeVector(T *p, const V (&values)[kCount]) {
  VectorBits<T, kCount> raw;
  pack(raw, values);
#pragma unroll
  for (int i = 0; i < VectorWord<T, kCount>::kWords; ++i) storeWord((VectorOf<T, kCount> *)p + i, raw.words[i]);
}
