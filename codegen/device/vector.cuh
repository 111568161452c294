// needs: types.cuh
// Several consecutive elements in one access. An aligned group of kCount elements of T moves as one 16-, 8-, 4- or
// 2-byte word (or several 16-byte ones); the values on the compute side are ComputeOf<T>: float for bf16, f16 and fp8.
//
//   float v[8];
//   loadVector(x + i, v);       // x + i must be aligned to the word: vectorAligned<T, 8>(x + i)
//   storeVector(y + i, v);

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

template <class T, int kCount> __device__ inline bool vectorAligned(const void *p) {
  return (u64)p % VectorWord<T, kCount>::kBytes == 0;
}

template <class T, int kCount> __device__ inline void loadVector(const T *p, ComputeOf<T> (&values)[kCount]) {
  typedef typename WordOf<VectorWord<T, kCount>::kBytes>::type Word;
  constexpr int kWords = VectorWord<T, kCount>::kWords;
  union {
    Word words[kWords];
    T elements[kCount];
  } raw;
#pragma unroll
  for (int i = 0; i < kWords; ++i) raw.words[i] = ((const Word *)p)[i];
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = widen(raw.elements[i]);
}

template <class T, class V, int kCount> __device__ inline void storeVector(T *p, const V (&values)[kCount]) {
  typedef typename WordOf<VectorWord<T, kCount>::kBytes>::type Word;
  constexpr int kWords = VectorWord<T, kCount>::kWords;
  union {
    Word words[kWords];
    T elements[kCount];
  } raw;
#pragma unroll
  for (int i = 0; i < kCount; ++i) raw.elements[i] = convert<T>(values[i]);
#pragma unroll
  for (int i = 0; i < kWords; ++i) ((Word *)p)[i] = raw.words[i];
}
