// needs: types.cuh index.cuh
// The gradient of an embedding (and of any row gather), deterministic: dTable[v][:] = sum of dY[i][:] over the
// positions i with tokens[i] == v, in ascending order of i, f32. No float atomics; the integer atomics decide nothing
// that survives.
//
//   tokens: [n], dY: [n][width], dTable: [rows][width]; negative tokens count from the end, others outside are skipped
//   scratch: offsets u32[rows + 1], cursors u32[rows], unsorted u32[n], positions u32[n]
//
//   1. gatherOffsets     1 block of 1024     offsets = exclusive prefix sum of how often each row occurs; cursors = a
//   copy
//   2. gatherScatter     grid over n         every position goes into its row's segment of `unsorted`, in any order
//   3. gatherSort        grid over n         ... and from there to its rank within the segment: `positions` is
//   ascending
//   4. gatherRowSums     grid.x = rows       one block a row of the table adds up its segment (0 rows: writes zeros)
//
// Cost beside reading dY and writing dTable: step 1 a few passes over `rows` counters; step 3 reads a segment once per
// member, so a token that makes up a tenth of n = 16384 costs 2.7e6 reads of one cached word.

// Blocks of 1024. Thread t owns the counters [t * share, (t + 1) * share).
template <class Token>
__device__ inline void gatherOffsets(const Token *tokens, i64 n, i64 rows, u32 *offsets, u32 *cursors) {
  __shared__ u32 warpTotals[32];
  for (i64 v = threadIdx.x; v < rows; v += blockDim.x) cursors[v] = 0;
  __syncthreads();
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
    const i64 token = wrapIndex(tokens[i], rows);
    if (token >= 0) atomicAdd(cursors + token, 1u);
  }
  __syncthreads();
  const i64 share = (rows + blockDim.x - 1) / blockDim.x;
  const i64 first = threadIdx.x * share, end = first + share < rows ? first + share : rows;
  u32 own = 0;
  for (i64 v = first; v < end; ++v) own += cursors[v];
  u32 upTo = own; // inclusive prefix over the lanes, then over the warps
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int distance = 1; distance < 32; distance *= 2) {
    const u32 left = __shfl_up_sync(0xffffffffu, upTo, distance);
    if (lane >= distance) upTo += left;
  }
  if (lane == 31) warpTotals[warp] = upTo;
  __syncthreads();
  u32 start = upTo - own;
  for (int w = 0; w < warp; ++w) start += warpTotals[w];
  for (i64 v = first; v < end; ++v) {
    const u32 count = cursors[v];
    offsets[v] = start;
    cursors[v] = start;
    start += count;
  }
  if (first < rows && end == rows) offsets[rows] = start;
}

template <class Token>
__device__ inline void gatherScatter(const Token *tokens, i64 n, i64 rows, u32 *cursors, u32 *unsorted) {
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const i64 token = wrapIndex(tokens[i], rows);
  if (token >= 0) unsorted[atomicAdd(cursors + token, 1u)] = (u32)i;
}

template <class Token>
__device__ inline void gatherSort(const Token *tokens, i64 rows, const u32 *offsets, const u32 *unsorted,
                                  u32 *positions) {
  const i64 slot = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (slot >= offsets[rows]) return; // less than n when tokens were skipped
  const u32 position = unsorted[slot];
  const i64 token = wrapIndex(tokens[position], rows);
  const u32 first = offsets[token], end = offsets[token + 1];
  u32 rank = 0;
  for (u32 other = first; other < end; ++other) rank += unsorted[other] < position ? 1u : 0u;
  positions[first + rank] = position;
}

// store(row, column, sum): the caller's, once per element of the table (a scale, a cast, adding to another gradient).
template <class T, class Store>
__device__ inline void gatherRowSums(const T *dY, i64 width, const u32 *offsets, const u32 *positions,
                                     const Store &store) {
  const i64 row = blockIdx.x;
  const u32 first = offsets[row], end = offsets[row + 1];
  for (i64 column = threadIdx.x; column < width; column += blockDim.x) {
    float sum = 0;
#pragma unroll 4
    for (u32 p = first; p < end; ++p) sum += toFloat(dY[(i64)positions[p] * width + column]);
    store(row, column, sum);
  }
}
