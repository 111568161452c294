// needs: types.cuh index.cuh reduce.cuh vector.cuh
// The gradient of an embedding (and of any row gather), deterministic: dTable[v][:] = sum of dY[i][:] over the
// positions i with tokens[i] == v, in a fixed order, f32. No float atomics; the integer atomics only count.
//
//   tokens: [n], dY: [n][width], dTable: [rows][width]; negative tokens count from the end, others outside are skipped
//   scratch: offsets u32[rows + 1], positions u32[n], found u32[n]
//
//   1. gatherOrder<kRows>   grid = ceil(rows / kRows), blocks of 1024: offsets and positions, ascending in each row
//   2. gatherRowSums        grid = rows: a block adds up the positions of its row (none: writes zeros)
//   or, for small tables, whose rows occur often, some of them perhaps most of the time:
//   2. gatherPartSums       grid = rows * kParts: a block adds up a part of a row's positions; scratch for the partial
//                           sums: f32[kParts][rows][width]
//   3. gatherPartTotals     grid = rows
//
// The blocks of step 1 need nothing of each other: each looks through all tokens for those of its kRows rows, and
// counts those of lower rows on the way. That is rows / kRows reads of the tokens, which lie in L2.

// Among the lanes for which `isMember` holds, how many are before this one. `members` becomes how many there are.
__device__ inline u32 lanesBefore(bool isMember, u32 &members) {
  const u32 all = __ballot_sync(0xffffffffu, isMember);
  members = (u32)__popc(all);
  return (u32)__popc(all & ((1u << threadIdx.x % 32) - 1));
}

// Few rows: each warp knows where its tokens of each row go, from what the warps before it have.
template <int kRows, class Token>
__device__ inline void orderDirectly(const Token *tokens, i64 n, i64 rows, u32 *offsets, u32 *positions) {
  __shared__ u32 countOf[32][kRows], lowerOf[32]; // of each warp: its tokens of each row; those of lower rows
  __shared__ u32 totalOf[kRows];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const i64 firstRow = (i64)blockIdx.x * kRows;
  const i64 share = (n + 1023) / 1024 * 32; // the warp's tokens
  const i64 begin = warp * share, end = begin + share < n ? begin + share : n;
  u32 lower = 0, counts[kRows] = {};
#pragma unroll 4
  for (i64 i = begin; i < end; i += 32) { // whole warps: they vote
    const i64 row = i + lane < end ? wrapIndex(tokens[i + lane], rows) : -1;
    lower += row >= 0 && row < firstRow ? 1u : 0u;
#pragma unroll
    for (int r = 0; r < kRows; ++r) counts[r] += (u32)__popc(__ballot_sync(0xffffffffu, row == firstRow + r));
  }
  lower = warpSum(lower);
  if (lane == 0) {
    lowerOf[warp] = lower;
    for (int r = 0; r < kRows; ++r) countOf[warp][r] = counts[r];
  }
  __syncthreads();

  if (warp < kRows) { // lane w: what the warps before w have of row `warp`
    const u32 count = countOf[lane][warp];
    u32 upTo = count;
    for (int distance = 1; distance < 32; distance *= 2) {
      const u32 left = __shfl_up_sync(0xffffffffu, upTo, distance);
      if (lane >= distance) upTo += left;
    }
    countOf[lane][warp] = upTo - count;
    if (lane == 31) totalOf[warp] = upTo;
  }
  u32 start = warpSum(lowerOf[lane]); // of row r
  __syncthreads();
  u32 next[kRows]; // where this warp's next token of row r goes
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    next[r] = start + countOf[warp][r];
    if (threadIdx.x == 0 && firstRow + r <= rows) offsets[firstRow + r] = start;
    start += totalOf[r];
  }
  if (threadIdx.x == 0 && firstRow + kRows == rows) offsets[rows] = start;
  for (i64 i = begin; i < end; i += 32) {
    const i64 row = i + lane < end ? wrapIndex(tokens[i + lane], rows) : -1;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      u32 members;
      const u32 before = lanesBefore(row == firstRow + r, members);
      if (row == firstRow + r) positions[next[r] + before] = (u32)(i + lane);
      next[r] += members;
    }
  }
}

// Many rows: the block lists its tokens, and its warps pick out of that what belongs to one row after the other.
template <int kRows, class Token>
__device__ inline void orderThroughList(const Token *tokens, i64 n, i64 rows, u32 *offsets, u32 *positions,
                                        u32 *found) {
  __shared__ u32 counts[kRows], starts[kRows];
  __shared__ u32 lowerOf[32], mineOf[32]; // what each warp saw of lower rows, and of this block's
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const i64 firstRow = (i64)blockIdx.x * kRows;
  const i64 share = (n + 1023) / 1024 * 32; // the warp's tokens
  const i64 begin = warp * share, end = begin + share < n ? begin + share : n;
  for (int r = threadIdx.x; r < kRows; r += blockDim.x) counts[r] = 0;
  __syncthreads();

  u32 lower = 0, mine = 0;
#pragma unroll 4
  for (i64 i = begin + lane; i < end; i += 32) {
    const i64 row = wrapIndex(tokens[i], rows);
    if (row >= 0 && row < firstRow) ++lower;
    if (row < firstRow || row >= firstRow + kRows) continue;
    ++mine;
    atomicAdd(counts + (row - firstRow), 1u);
  }
  lower = warpSum(lower), mine = warpSum(mine);
  if (lane == 0) lowerOf[warp] = lower, mineOf[warp] = mine;
  __syncthreads();

  u32 base = 0, total = 0, next = 0; // where the block's segment begins, its length, where this warp's part begins
  for (int w = 0; w < 32; ++w) {
    if (w == warp) next = total;
    base += lowerOf[w], total += mineOf[w];
  }
  next += base;
  for (i64 i = begin; i < end; i += 32) { // whole warps: they vote
    const i64 row = i + lane < end ? wrapIndex(tokens[i + lane], rows) : -1;
    const bool isMine = row >= firstRow && row < firstRow + kRows;
    u32 members;
    const u32 before = lanesBefore(isMine, members);
    if (isMine) found[next + before] = (u32)(i + lane);
    next += members;
  }
  if (warp == 0) { // where each row begins
    u32 start = base;
    for (int r = lane; r - lane < kRows; r += 32) {
      const u32 count = r < kRows ? counts[r] : 0;
      u32 upTo = count;
      for (int distance = 1; distance < 32; distance *= 2) {
        const u32 left = __shfl_up_sync(0xffffffffu, upTo, distance);
        if (lane >= distance) upTo += left;
      }
      if (r < kRows) starts[r] = start + upTo - count;
      start += __shfl_sync(0xffffffffu, upTo, 31);
    }
  }
  __syncthreads();

  for (int r = threadIdx.x; r < kRows && firstRow + r < rows; r += blockDim.x) offsets[firstRow + r] = starts[r];
  if (threadIdx.x == 0 && firstRow + kRows >= rows) offsets[rows] = base + total;
  for (int r = warp; r < kRows; r += 32) {
    u32 at = starts[r];
    const u32 last = at + counts[r];
    for (u32 k = 0; at < last; k += 32) {
      const u32 position = k + lane < total ? found[base + k + lane] : 0;
      const bool isOfRow = k + lane < total && wrapIndex(tokens[position], rows) == firstRow + r;
      u32 members;
      const u32 before = lanesBefore(isOfRow, members);
      if (isOfRow) positions[at + before] = position;
      at += members;
    }
  }
}

template <int kRows, class Token>
__device__ inline void gatherOrder(const Token *tokens, i64 n, i64 rows, u32 *offsets, u32 *positions, u32 *found) {
  if (kRows <= 8)
    orderDirectly<(kRows <= 8 ? kRows : 1)>(tokens, n, rows, offsets, positions);
  else
    orderThroughList<kRows>(tokens, n, rows, offsets, positions, found);
}

// Positions first + slice, first + slice + kSlices, ... below `end`: kWidth columns of theirs, in this order.
template <int kSlices, int kWidth, class T>
__device__ inline void addPositions(const T *dY, i64 width, i64 column, const u32 *positions, u32 first, u32 end,
                                    float (&sums)[kWidth]) {
  constexpr int kAtOnce = 8; // loads on their way
  for (u32 p = first; p < end; p += kAtOnce * kSlices) {
    float x[kAtOnce][kWidth];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) { // past the end the first one again, which is not added
      const u32 q = p + u * kSlices < end ? p + u * kSlices : p;
      loadVector(dY + (i64)positions[q] * width + column, x[u]);
    }
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u)
      for (int e = 0; e < kWidth; ++e) sums[e] += p + u * kSlices < end ? x[u][e] : 0.0f;
  }
}

// A block a row, kLanes threads of kWidth columns. put(row, column, sums): the caller's, kWidth columns at once (a
// scale, a cast, adding to another gradient).
template <int kLanes, int kWidth, class T, class Put>
__device__ inline void gatherRowSums(const T *dY, i64 width, const u32 *offsets, const u32 *positions, const Put &put) {
  const i64 row = blockIdx.x;
  for (i64 column = threadIdx.x * kWidth; column < width; column += kLanes * kWidth) {
    float sums[kWidth] = {};
    addPositions<1>(dY, width, column, positions, offsets[row], offsets[row + 1], sums);
    put(row, column, sums);
  }
}

// The positions of a row in parts of at least 16, at most kParts of them: those of part p are [begin, end).
template <int kParts> struct RowParts {
  u32 first, end, share;
  __device__ inline RowParts(const u32 *offsets, i64 row) : first(offsets[row]), end(offsets[row + 1]) {
    share = (end - first + kParts - 1) / kParts;
    if (share < 16) share = 16;
  }
  __device__ inline u32 count() const { return (end - first + share - 1) / share; }
  __device__ inline u32 begin(u32 part) const { return first + part * share; }
};

// A block a part: kSlices * kLanes threads, slice s takes positions s, s + kSlices, ...; then the slices are added in
// order. partials: [kParts][rows][width]; parts without positions write nothing.
template <int kParts, int kSlices, int kLanes, int kWidth, class T>
__device__ inline void gatherPartSums(const T *dY, i64 rows, i64 width, const u32 *offsets, const u32 *positions,
                                      float *partials) {
  __shared__ float sliceSums[kSlices][kLanes * kWidth];
  const int slice = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
  const i64 row = blockIdx.x / kParts;
  const u32 part = blockIdx.x % kParts;
  const RowParts<kParts> parts(offsets, row);
  if (part >= parts.count()) return; // the whole block
  const u32 begin = parts.begin(part), end = begin + parts.share < parts.end ? begin + parts.share : parts.end;
  for (i64 start = 0; start < width; start += kLanes * kWidth) {
    const i64 column = start + lane * kWidth;
    float sums[kWidth] = {};
    if (column < width) addPositions<kSlices>(dY, width, column, positions, begin + slice, end, sums);
    for (int e = 0; e < kWidth; ++e) sliceSums[slice][lane * kWidth + e] = sums[e];
    __syncthreads();
    if (slice == 0 && column < width) {
      for (int s = 1; s < kSlices; ++s)
        for (int e = 0; e < kWidth; ++e) sums[e] += sliceSums[s][lane * kWidth + e];
      storeVector(partials + (part * rows + row) * width + column, sums);
    }
    __syncthreads(); // the slices may be written again
  }
}

// A block a row, kLanes threads of kWidth columns: the row's parts, in order.
template <int kParts, int kLanes, int kWidth, class Put>
__device__ inline void gatherPartTotals(const float *partials, i64 rows, i64 width, const u32 *offsets,
                                        const Put &put) {
  const i64 row = blockIdx.x;
  const u32 count = RowParts<kParts>(offsets, row).count();
  for (i64 column = threadIdx.x * kWidth; column < width; column += kLanes * kWidth) {
    float sums[kWidth] = {};
#pragma unroll
    for (u32 part = 0; part < kParts; ++part) {
      float x[kWidth];
      if (part < count) loadVector(partials + (part * rows + row) * width + column, x);
      for (int e = 0; e < kWidth; ++e) sums[e] += part < count ? x[e] : 0.0f;
    }
    put(row, column, sums);
  }
}
