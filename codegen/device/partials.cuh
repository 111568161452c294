// needs: types.cuh reduce.cuh
// The second stage of reductions over rows: partial results of chunks of rows become one. Deterministic: the order
// depends on `count` alone.
//
//   columnTotal<Sum>(partials, count, columns, column, exists)   blocks of 256: thread t works on column t % 32 of the
//                                                                block's 32 columns, all eight warps get its total
//   scalarTotal<Sum>(partials, count)                            the whole block works, all threads get the total

// partials: [count][columns]. Slice s (warp s) takes chunks s, s + 8, ...; then the slices are added in order.
template <class Op, class T>
__device__ inline T columnTotal(const T *partials, i64 count, i64 columns, i64 column, bool exists) {
  __shared__ T slices[8][32];
  const int lane = threadIdx.x % 32, slice = threadIdx.x / 32;
  T total = Op::template identity<T>();
  if (exists) {
#pragma unroll 8 // loads ahead of the additions, which keep their order
    for (i64 chunk = slice; chunk < count; chunk += 8) total = Op::combine(total, partials[chunk * columns + column]);
  }
  slices[slice][lane] = total;
  __syncthreads();
  total = slices[0][lane];
  for (int s = 1; s < 8; ++s) total = Op::combine(total, slices[s][lane]);
  __syncthreads(); // the slices may be written again
  return total;
}

// partials: [count]
template <class Op, class T> __device__ inline T scalarTotal(const T *partials, i64 count) {
  T total = Op::template identity<T>();
  for (i64 chunk = threadIdx.x; chunk < count; chunk += blockDim.x) total = Op::combine(total, partials[chunk]);
  return blockReduce<Op>(total);
}
