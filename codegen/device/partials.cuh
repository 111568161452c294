// needs: types.cuh reduce.cuh
// Reductions over rows, in two stages: chunks of rows become partial results, then those become one. Deterministic: the
// order depends on sizes alone.
//
//   storeColumnSums<Sum, 8, 4>(out, count, sums)            the end of stage one: the warps of a block have sums of the
//                                                           same columns over different rows
//   columnTotals<Sum, 16>(parts, count, columns, c, exists, t)
//                                                           stage two, blocks of 512 that share 16 columns: thread t
//                                                           works on column t % 16, the first 16 get the totals
//   scalarTotal<Sum>(parts, count)                          stage two: the whole block works, all threads get the total

// Lane l of each of the kWarps warps has sums[j * kWidth + e] of column (j * 32 + l) * kWidth + e. Every thread of the
// block makes the call; out[c] is written for c < count. `parts`: [kWarps][32 * kSums] in shared memory, free for use.
template <class Op, int kWarps, int kWidth, int kSums, class T>
__device__ inline void storeColumnSums(T *parts, T *out, i64 count, const T (&sums)[kSums]) {
  constexpr int kColumns = 32 * kSums;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  __syncthreads(); // all are done with what the memory was used for before
#pragma unroll
  for (int i = 0; i < kSums; ++i) parts[warp * kColumns + (i / kWidth * 32 + lane) * kWidth + i % kWidth] = sums[i];
  __syncthreads();
  for (int c = threadIdx.x; c < kColumns && c < count; c += kWarps * 32) {
    T total = parts[c];
    for (int w = 1; w < kWarps; ++w) total = Op::combine(total, parts[w * kColumns + c]);
    out[c] = total;
  }
}
template <class Op, int kWarps, int kWidth, int kTurns, class T>
__device__ inline void storeColumnSums(T *parts, T *out, i64 count, const T (&sums)[kTurns][kWidth]) {
  storeColumnSums<Op, kWarps, kWidth>(parts, out, count, (const T(&)[kTurns * kWidth]) sums);
}
template <class Op, int kWarps, int kWidth, int kSums, class T>
__device__ inline void storeColumnSums(T *out, i64 count, const T (&sums)[kSums]) {
  __shared__ T parts[kWarps * 32 * kSums];
  storeColumnSums<Op, kWarps, kWidth>(parts, out, count, sums);
}
template <class Op, int kWarps, int kWidth, int kTurns, class T>
__device__ inline void storeColumnSums(T *out, i64 count, const T (&sums)[kTurns][kWidth]) {
  storeColumnSums<Op, kWarps, kWidth>(out, count, (const T(&)[kTurns * kWidth]) sums);
}
template <class Op, int kWarps, int kWidth, class T> __device__ inline void storeColumnSums(T *out, i64 count, T sum) {
  const T sums[1] = {sum};
  storeColumnSums<Op, kWarps, kWidth>(out, count, sums);
}

// parts[i]: [count][columns]. Slice s of 512 / kColumns takes chunks s, s + slices, ...; then the slices are added in
// order. Few columns a block make many blocks, and few loads one behind the other.
template <class Op, int kColumns, int kCount, class T>
__device__ inline void columnTotals(const T *const (&parts)[kCount], i64 count, i64 columns, i64 column, bool exists,
                                    T (&totals)[kCount]) {
  constexpr int kSlices = 512 / kColumns;
  __shared__ T slices[kCount][kSlices][kColumns];
  const int place = threadIdx.x % kColumns, slice = threadIdx.x / kColumns;
  for (int i = 0; i < kCount; ++i) totals[i] = Op::template identity<T>();
  if (exists) {
#pragma unroll 8 // loads ahead of the additions, which keep their order
    for (i64 chunk = slice; chunk < count; chunk += kSlices)
#pragma unroll
      for (int i = 0; i < kCount; ++i) totals[i] = Op::combine(totals[i], parts[i][chunk * columns + column]);
  }
  for (int i = 0; i < kCount; ++i) slices[i][slice][place] = totals[i];
  __syncthreads();
  if (slice == 0)
    for (int i = 0; i < kCount; ++i)
#pragma unroll
      for (int s = 1; s < kSlices; ++s) totals[i] = Op::combine(totals[i], slices[i][s][place]);
  __syncthreads(); // the slices may be written again
}

// parts: [count]
template <class Op, class T> __device__ inline T scalarTotal(const T *parts, i64 count) {
  T total = Op::template identity<T>();
  for (i64 chunk = threadIdx.x; chunk < count; chunk += blockDim.x) total = Op::combine(total, parts[chunk]);
  return blockReduce<Op>(total);
}
