// needs: types.cuh
// Warp and block reductions. Deterministic: a butterfly inside each warp, then a butterfly over the warps' results in
// warp order; a + b equals b + a, so every thread gets the same bits.
//
// Rules: blocks are one-dimensional, a multiple of 32, at most 1024 threads; every thread of the block makes the call.
// Back-to-back calls are safe: the last barrier is passed only when nobody reads the scratch memory any more.
// The operators: identity() is the neutral element, combine(a, b) is commutative.
struct Sum {
  template <class T> static __device__ inline T identity() { return (T)0; }
  template <class T> static __device__ inline T combine(T a, T b) { return a + b; }
};
struct Product {
  template <class T> static __device__ inline T identity() { return (T)1; }
  template <class T> static __device__ inline T combine(T a, T b) { return a * b; }
};

template <class T> struct Extremes; // lowest and highest value of a reducible type, as the identities below need them
template <> struct Extremes<float> {
  static __device__ inline float lowest() { return -bitsToFloat(0x7f800000u); }
  static __device__ inline float highest() { return bitsToFloat(0x7f800000u); }
};
template <> struct Extremes<double> {
  static __device__ inline double lowest() { return -(double)bitsToFloat(0x7f800000u); }
  static __device__ inline double highest() { return (double)bitsToFloat(0x7f800000u); }
};
template <> struct Extremes<i32> {
  static __device__ inline i32 lowest() { return (i32)0x80000000u; }
  static __device__ inline i32 highest() { return 0x7fffffff; }
};
template <> struct Extremes<u32> {
  static __device__ inline u32 lowest() { return 0; }
  static __device__ inline u32 highest() { return 0xffffffffu; }
};
template <> struct Extremes<i64> {
  static __device__ inline i64 lowest() { return (i64)0x8000000000000000ull; }
  static __device__ inline i64 highest() { return 0x7fffffffffffffffll; }
};

// NaN wins in Max and Min (softmax, arithmetic max); MaxNumber skips NaN (amax of a tensor with a NaN in it).
struct Max {
  template <class T> static __device__ inline T identity() { return Extremes<T>::lowest(); }
  template <class T> static __device__ inline T combine(T a, T b) { return a > b || a != a ? a : b; }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  static __device__ inline float combine(float a, float b) { // the same in one instruction
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
    return larger;
  }
#endif
};
struct Min {
  template <class T> static __device__ inline T identity() { return Extremes<T>::highest(); }
  template <class T> static __device__ inline T combine(T a, T b) { return a < b || a != a ? a : b; }
};
struct MaxNumber {
  template <class T> static __device__ inline T identity() { return Extremes<T>::lowest(); }
  template <class T> static __device__ inline T combine(T a, T b) { return a > b || b != b ? a : b; }
};

// All 32 lanes call; all 32 get the result.
template <class Op, class T> __device__ inline T warpReduce(T value) {
  for (int distance = 16; distance > 0; distance /= 2)
    value = Op::combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
  return value;
}
template <class T> __device__ inline T warpSum(T value) { return warpReduce<Sum>(value); }
template <class T> __device__ inline T warpMax(T value) { return warpReduce<Max>(value); }

// kCount independent values at once, for the price of one pair of barriers. In place: values[i] becomes its reduction.
template <class Op, int kCount, class T> __device__ inline void blockReduceAll(T (&values)[kCount]) {
  __shared__ T scratch[kCount][32]; // [value][warp]
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  for (int i = 0; i < kCount; ++i) {
    values[i] = warpReduce<Op>(values[i]);
    if (lane == 0) scratch[i][warp] = values[i];
  }
  __syncthreads();
  for (int i = 0; i < kCount; ++i)
    values[i] = warpReduce<Op>(lane < warps ? scratch[i][lane] : Op::template identity<T>());
  __syncthreads();
}

template <class Op, class T> __device__ inline T blockReduce(T value) {
  T values[1] = {value};
  blockReduceAll<Op>(values);
  return values[0];
}
template <class T> __device__ inline T blockSum(T value) { return blockReduce<Sum>(value); }
template <class T> __device__ inline T blockMax(T value) { return blockReduce<Max>(value); }
