// needs: types.cuh reduce.cuh
// Reductions over rows, in two stages: chunks of rows become partial results, then those become one. Deterministic: the
// order depends on sizes alone.
//
//   storeColumnSums<Sum, 8, 4>(out, count, sums)            the end of stage one: the warps of a block have sums of the
//                                                           same columns over different rows
//   columnTotals<Sum>(parts, count, columns, c, exists, t)  stage two, blocks of 512: thread t works on column t % 32
//   of
//                                                           the block's 32 columns, all warps get its totals
//   scalarTotal<Sum>(parts, count)                          stage two: the whole block works, all threads get the total

// Lane l of each of the kWarps warps has sums[j * kWidth + e] of column (j * 32 + l) * kWidth + e. Every thread of the
// block makes the call; out[c] is written for c < count.
template <class Op, int kWarps, int kWidth, int kSums, class T>
__device__ inline void storeColumnSums(T *out, i64 count, const T (&sums)[kSums]) {
  constexpr int kColumns = 32 * kSums;
  __shared__ T parts[kWarps][kColumns];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int i = 0; i < kSums; ++i) parts[warp][(i / kWidth * 32 + lane) * kWidth + i % kWidth] = sums[i];
  __syncthreads();
  for (int c = threadIdx.x; c < kColumns && c < count; c += kWarps * 32) {
    T total = parts[0][c];
    for (int w = 1; w < kWarps; ++w) total = Op::combine(total, parts[w][c]);
    out[c] = total;
  }
  __syncthreads(); // the parts may be written again
}
template <class Op, int kWarps, int kWidth, int kTurns, class T>
__device__ inline void storeColumnSums(T *out, i64 count, const T (&sums)[kTurns][kWidth]) {
  storeColumnSums<Op, kWarps, kWidth>(out, count, (const T(&)[kTurns * kWidth]) sums);
}
template <class Op, int kWarps, int kWidth, class T> __device__ inline void storeColumnSums(T *out, i64 count, T sum) {
  const T sums[1] = {sum};
  storeColumnSums<Op, kWarps, kWidth>(out, count, sums);
}

// parts[i]: [count][columns]. Slice s (warp s) takes chunks s, s + 16, ...; then the slices are added in order.
template <class Op, int kCount, class T>
__device__ inline void columnTotals(const T *const (&parts)[kCount], i64 count, i64 columns, i64 column, bool exists,
                                    T (&totals)[kCount]) {
  constexpr int kSlices = 16;
  __shared__ T slices[kCount][kSlices][32];
  const int lane = threadIdx.x % 32, slice = threadIdx.x / 32;
  for (int i = 0; i < kCount; ++i) totals[i] = Op::template identity<T>();
  if (exists) {
#pragma unroll 8 // loads ahead of the additions, which keep their order
    for (i64 chunk = slice; chunk < count; chunk += kSlices)
#pragma unroll
      for (int i = 0; i < kCount; ++i) totals[i] = Op::combine(totals[i], parts[i][chunk * columns + column]);
  }
  for (int i = 0; i < kCount; ++i) slices[i][slice][lane] = totals[i];
  __syncthreads();
  for (int i = 0; i < kCount; ++i) {
    totals[i] = slices[i][0][lane];
    for (int s = 1; s < kSlices; ++s) totals[i] = Op::combine(totals[i], slices[i][s][lane]);
  }
  __syncthreads(); // the slices may be written again
}

// parts: [count]
template <class Op, class T> __device__ inline T scalarTotal(const T *parts, i64 count) {
  T total = Op::template identity<T>();
  for (i64 chunk = threadIdx.x; chunk < count; chunk += blockDim.x) total = Op::combine(total, parts[chunk]);
  return blockReduce<Op>(total);
}
