// needs: types.cuh reduce.cuh math.cuh
// The largest of many x and the sum of exp(x - largest), each x read once: when a larger one comes, the sum so far
// moves to its scale. Of threads, warps or blocks:
//
//   ExpSum mine;
//   mine.add(x8);                                            // 8 at once: one step of scale for all
//   const float largest = blockReduce<Max>(mine.largest);
//   const float sum = blockReduce<Sum>(mine.sumAt(largest));
//
// As the two reductions one after the other: NaN where there is one, and where the largest is infinite.
struct ExpSum {
  float largest = Max::identity<float>(), sum = 0;

  template <int kCount> __device__ inline void add(const float (&x)[kCount]) {
    float most = largest;
#pragma unroll
    for (int i = 0; i < kCount; ++i) most = Max::combine(most, x[i]);
    moveTo(most);
    const float origin = finite(largest);
#pragma unroll
    for (int i = 0; i < kCount; ++i) sum += power(x[i] - origin);
  }
  __device__ inline void add(float x) {
    const float one[1] = {x};
    add(one);
  }
  __device__ inline float sumAt(float total) {
    moveTo(total);
    return sum + (total - total); // NaN where the largest is infinite
  }

private:
  // A term's error is d * 2^-24 of exp(d), d <= 0: below that of adding it to the largest term, which is 1.
  static __device__ inline float power(float d) { return math::unitExp2(d * 1.442695041f); }
  static __device__ inline float finite(float x) { return x == Max::identity<float>() ? 0.0f : x; } // nothing yet
  __device__ inline void moveTo(float larger) {
    sum *= power(largest - finite(larger));
    largest = larger;
  }
};
