// needs: types.cuh math.cuh mma_sm80.cuh attention_shape.cuh attention_mma.cuh
// Attention backward on tensor cores (sm_80 and later), two kernels in this order, no atomics, the same bits every run.
// For what attention_mma.cuh takes.
//
//   attentionQueryGradMma: delta[i] = sum(dOut[i] * out[i]);  dq = scale * dS·k
//                          one block a tile of queries, over the keys
//   attentionKeyGradMma:   dk = scale * dSᵀ·q, dv = Pᵀ·dOut
//                          one block a tile of keys, over the query heads of the group and their queries
//   with P = exp(scale * q·k - logSumExp), dS = P * (dOut·v - delta)
//
// f32 sums in registers; P and dS are rounded to T, since they are left operands of products. Strides of all views are
// free, so dq, dk, dv may be slices of one packed dqkv.
//
//   block = 128, dynamic shared memory = sizeof(AttentionQueryGradShared<D, T>), sizeof(AttentionKeyGradShared<D, T>):
//   55 KB at D = 64, 69 KB at 128
//   attentionQueryGradMma<D>: grid.x = batch * queryHeads * ceil(queries / 64)
//   attentionKeyGradMma<D>:   grid.x = batch * keyHeads * ceil(keys / 64)
//
// A warp owns 16 rows (queries of the first, keys of the second). The other side comes in tiles, one ahead, which a
// warp works through 32 at a time: scores[16][32] and their gradients are all that it keeps besides its sums.

template <int kHeadSize, class T> struct AttentionBackwardMma {
  static constexpr int kThreads = 128, kOwn = 64;
  static constexpr int kMoving = kHeadSize <= 64 ? 64 : 32; // rows of a tile that comes and goes
  static constexpr int kStep = 32;
  typedef MmaTile<T, kOwn, kHeadSize, kThreads> Own;
  typedef MmaTile<T, kMoving, kHeadSize, kThreads> Moving;
  static constexpr int kWidth = Own::kWidth;
};
template <int kHeadSize, class T> struct AttentionQueryGradShared {
  typename AttentionBackwardMma<kHeadSize, T>::Own q, dOut;
  typename AttentionBackwardMma<kHeadSize, T>::Moving k[2], v[2];
  float delta[AttentionBackwardMma<kHeadSize, T>::kOwn];
};
template <int kHeadSize, class T> struct AttentionKeyGradShared {
  typename AttentionBackwardMma<kHeadSize, T>::Own k, v;
  typename AttentionBackwardMma<kHeadSize, T>::Moving q[2], dOut[2];
  float logSumExp[2][AttentionBackwardMma<kHeadSize, T>::kMoving],
      delta[2][AttentionBackwardMma<kHeadSize, T>::kMoving];
};

// deltas[r] = sum over columns of rows[r] * out[r], for rows row .. row + 15 of the tile. One warp.
template <int kHeadSize, class Tile, class T>
__device__ inline void warpRowDots(const Tile &rows, const T *out, i64 rowStride, int row, int count, float *deltas) {
  constexpr int kGroups = kHeadSize / 8; // 16-byte words of a row
  constexpr int kLanes = kGroups > 8 ? 16 : kGroups > 4 ? 8 : kGroups > 2 ? 4 : kGroups > 1 ? 2 : 1; // a row each
  const int lane = threadIdx.x % 32, group = lane % kLanes;
#pragma unroll
  for (int first = 0; first < 16; first += 32 / kLanes) {
    const int r = row + first + lane / kLanes;
    float sum = 0;
    if (r < count && group < kGroups && first + lane / kLanes < 16) {
      float theirs[8], ours[8];
      loadVector(out + r * rowStride + group * 8, theirs);
      readVector(rows.at(r, group * 8), ours);
#pragma unroll
      for (int i = 0; i < 8; ++i) sum += theirs[i] * ours[i];
    }
#pragma unroll
    for (int distance = kLanes / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    if (group == 0 && first + lane / kLanes < 16) deltas[r] = sum;
  }
}

// dOut: also read for delta. delta: [batch][queryHeads][queries], written.
template <int kHeadSize, class T>
__device__ inline void attentionQueryGradMma(HeadView<const T> q, HeadView<const T> k, HeadView<const T> v,
                                             HeadView<const T> out, HeadView<const T> dOut, HeadView<T> dq,
                                             const float *logSumExp, float *delta, const AttentionShape &shape) {
  typedef AttentionBackwardMma<kHeadSize, T> Sizes;
  constexpr int kOwn = Sizes::kOwn, kStep = Sizes::kStep, kMoving = Sizes::kMoving;
  extern __shared__ __align__(16) u8 attentionMemory[];
  auto &shared = *(AttentionQueryGradShared<kHeadSize, T> *)attentionMemory;

  const int queries = (int)shape.queries, heads = (int)(shape.queryHeads / shape.keyHeads);
  const AttentionBlock block(shape.batch, shape.queryHeads, (queries + kOwn - 1) / kOwn, shape.causal);
  const int firstQuery = block.tile * kOwn, lastQuery = (firstQuery + kOwn < queries ? firstQuery + kOwn : queries) - 1;
  const int warpRow = threadIdx.x / 32 * 16, lane = threadIdx.x % 32, group = lane / 4, pair = lane % 4;
  const AttentionSight sight(shape, block.batch);
  const AttentionRange least(sight, firstQuery), most(sight, lastQuery);
  const AttentionRange seen[2] = {AttentionRange(sight, firstQuery + warpRow + group),
                                  AttentionRange(sight, firstQuery + warpRow + group + 8)};
  const int warpEnd = (int)sight.endKey(firstQuery + warpRow + 15);
  const T *keys = k.at(block.batch, block.head / heads, 0), *values = v.at(block.batch, block.head / heads, 0);
  const i64 rowOfHead = ((i64)block.batch * shape.queryHeads + block.head) * queries;

  shared.q.fill(q.at(block.batch, block.head, firstQuery), q.rowStride, queries - firstQuery);
  shared.dOut.fill(dOut.at(block.batch, block.head, firstQuery), dOut.rowStride, queries - firstQuery);
  commitCopies();
  auto fetch = [&](int firstKey, int stage) {
    shared.k[stage].fill(keys + firstKey * k.rowStride, k.rowStride, (int)sight.length - firstKey);
    shared.v[stage].fill(values + firstKey * v.rowStride, v.rowStride, (int)sight.length - firstKey);
    commitCopies();
  };
  const int start = least.low / kMoving * kMoving;
  fetch(start, 0);
  waitForCopies<1>();
  __syncthreads();

  u32 query[Sizes::kWidth / 16][4], grad[Sizes::kWidth / 16][4]; // left operands
  shared.q.loadLeft(query, warpRow);
  shared.dOut.loadLeft(grad, warpRow);
  warpRowDots<kHeadSize>(shared.dOut, out.at(block.batch, block.head, firstQuery), out.rowStride, warpRow,
                         queries - firstQuery, shared.delta);
  __syncwarp();
  float rowDelta[2], rowSum[2]; // rowSum: log2(sum(exp(scores)))
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = warpRow + group + 8 * r;
    const bool exists = firstQuery + row < queries;
    rowDelta[r] = shared.delta[row];
    rowSum[r] = exists ? logSumExp[rowOfHead + firstQuery + row] * 1.4426950408889634f : 0.0f;
    if (pair == 0 && exists) delta[rowOfHead + firstQuery + row] = rowDelta[r];
  }

  float sums[Sizes::kWidth / 8][4];
  clear(sums);
  const float scale = shape.scale * 1.4426950408889634f; // exp(x) = 2^(x / ln 2)
  int stage = 0;
  for (int firstKey = start; firstKey < most.high; firstKey += kMoving, stage ^= 1) {
    waitForCopies<0>();
    __syncthreads(); // this tile is there for all, and all are done with the one before
    if (firstKey + kMoving < most.high) fetch(firstKey + kMoving, stage ^ 1);
    const bool all = !sight.mask && firstKey >= most.low && firstKey + kMoving <= least.high;
#pragma unroll
    for (int step = 0; step < kMoving; step += kStep) {
      if (firstKey + step >= warpEnd) break;
      float weights[kStep / 8][4], grads[kStep / 8][4]; // P, dS [query][key]
      clear(weights);
      clear(grads);
      shared.k[stage].template addTransposed<kStep / 8>(weights, query, step);
      shared.v[stage].template addTransposed<kStep / 8>(grads, grad, step);
#pragma unroll
      for (int n = 0; n < kStep / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) weights[n][i] = math::unitExp2(weights[n][i] * scale - rowSum[i / 2]);
      if (!all) {
#pragma unroll
        for (int n = 0; n < kStep / 8; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const int key = firstKey + step + n * 8 + pair * 2 + i % 2;
            if (!seen[i / 2].has(key) || (sight.mask && sight.mask[key] == 0)) weights[n][i] = 0;
          }
      }
#pragma unroll
      for (int n = 0; n < kStep / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) grads[n][i] = weights[n][i] * (grads[n][i] - rowDelta[i / 2]);
      u32 left[kStep / 16][4];
      packLeft<T>(left, grads);
      shared.k[stage].template add<kStep / 16>(sums, left, step);
    }
  }
  if (start >= most.high) { // no key is seen: what was asked for must not arrive behind the store
    waitForCopies<0>();
    __syncthreads();
  }
  shared.q.store(dq.at(block.batch, block.head, firstQuery), dq.rowStride, queries - firstQuery, warpRow, sums,
                 shape.scale, shape.scale);
}

// Rows of dk and dv beyond keyLength are written as zeros.
template <int kHeadSize, class T>
__device__ inline void attentionKeyGradMma(HeadView<const T> q, HeadView<const T> k, HeadView<const T> v,
                                           HeadView<const T> dOut, HeadView<T> dk, HeadView<T> dv,
                                           const float *logSumExp, const float *delta, const AttentionShape &shape) {
  typedef AttentionBackwardMma<kHeadSize, T> Sizes;
  constexpr int kOwn = Sizes::kOwn, kStep = Sizes::kStep, kMoving = Sizes::kMoving;
  extern __shared__ __align__(16) u8 attentionMemory[];
  auto &shared = *(AttentionKeyGradShared<kHeadSize, T> *)attentionMemory;

  const int queries = (int)shape.queries, keys = (int)shape.keys, heads = (int)(shape.queryHeads / shape.keyHeads);
  const AttentionBlock block(shape.batch, shape.keyHeads, (keys + kOwn - 1) / kOwn,
                             false); // causal: the first see the most
  const int firstKey = block.tile * kOwn, lastKey = (firstKey + kOwn < keys ? firstKey + kOwn : keys) - 1;
  const int warpRow = threadIdx.x / 32 * 16, lane = threadIdx.x % 32, group = lane / 4, pair = lane % 4;
  const AttentionSight sight(shape, block.batch);
  const int length = (int)sight.length;
  int low[2], high[2]; // the queries that see this lane's keys
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int key = firstKey + warpRow + group + 8 * r;
    const bool exists = key < length && (!sight.mask || sight.mask[key] != 0);
    low[r] = (int)sight.firstQuery(key), high[r] = exists ? (int)sight.endQuery(key, queries) : 0;
  }
  const int warpLow = (int)sight.firstQuery(firstKey + warpRow);
  const int warpHigh = (int)sight.endQuery(firstKey + warpRow + 15, queries);
  const int end = firstKey < length ? (int)sight.endQuery(lastKey, queries) : 0;
  const int start = (int)sight.firstQuery(firstKey) / kMoving * kMoving;
  const int allLow = (int)sight.firstQuery(lastKey), allHigh = (int)sight.endQuery(firstKey, queries);
  const bool allKeys = !sight.mask && firstKey + kOwn <= length;

  shared.k.fill(k.at(block.batch, block.head, firstKey), k.rowStride, length - firstKey);
  shared.v.fill(v.at(block.batch, block.head, firstKey), v.rowStride, length - firstKey);
  auto fetch = [&](int head, int firstQuery, int stage) {
    const int rows = queries - firstQuery;
    shared.q[stage].fill(q.at(block.batch, head, firstQuery), q.rowStride, rows);
    shared.dOut[stage].fill(dOut.at(block.batch, head, firstQuery), dOut.rowStride, rows);
    if (threadIdx.x < 2 * kMoving) {
      const int i = threadIdx.x % kMoving;
      const i64 row = ((i64)block.batch * shape.queryHeads + head) * queries + firstQuery + i;
      if (threadIdx.x < kMoving)
        copyAsync4(&shared.logSumExp[stage][i], logSumExp + row, i < rows);
      else
        copyAsync4(&shared.delta[stage][i], delta + row, i < rows);
    }
    commitCopies();
  };

  float keySums[Sizes::kWidth / 8][4], valueSums[Sizes::kWidth / 8][4];
  clear(keySums);
  clear(valueSums);
  const float scale = shape.scale * 1.4426950408889634f; // exp(x) = 2^(x / ln 2)
  const int lastHead = (block.head + 1) * heads;
  int head = start < end ? block.head * heads : lastHead, firstQuery = start, stage = 0;
  if (head < lastHead) fetch(head, firstQuery, 0);
  while (head < lastHead) {
    const bool turn = firstQuery + kMoving >= end; // to the next head
    const int nextHead = turn ? head + 1 : head, nextQuery = turn ? start : firstQuery + kMoving;
    waitForCopies<0>();
    __syncthreads(); // this tile is there for all, and all are done with the one before
    if (nextHead < lastHead) fetch(nextHead, nextQuery, stage ^ 1);
    const bool all = allKeys && firstQuery >= allLow && firstQuery + kMoving <= allHigh;
#pragma unroll
    for (int step = 0; step < kMoving; step += kStep) {
      const int at = firstQuery + step;
      if (at + kStep <= warpLow || at >= warpHigh) continue;
      float weights[kStep / 8][4], grads[kStep / 8][4]; // P, dS [key][query]
      clear(weights);
      shared.q[stage].template addTransposed<kStep / 8>(weights, shared.k, warpRow, step);
#pragma unroll
      for (int n = 0; n < kStep / 8; ++n) {
        const float2 sum = *(const float2 *)&shared.logSumExp[stage][step + n * 8 + pair * 2];
#pragma unroll
        for (int i = 0; i < 4; ++i)
          weights[n][i] = math::unitExp2(weights[n][i] * scale - (i % 2 ? sum.y : sum.x) * 1.4426950408889634f);
      }
      if (!all) {
#pragma unroll
        for (int n = 0; n < kStep / 8; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const int query = at + n * 8 + pair * 2 + i % 2;
            if (query < low[i / 2] || query >= high[i / 2]) weights[n][i] = 0;
          }
      }
      clear(grads);
      shared.dOut[stage].template addTransposed<kStep / 8>(grads, shared.v, warpRow, step);
      u32 left[kStep / 16][4];
      packLeft<T>(left, weights);
      shared.dOut[stage].template add<kStep / 16>(valueSums, left, step);
#pragma unroll
      for (int n = 0; n < kStep / 8; ++n) {
        const float2 dot = *(const float2 *)&shared.delta[stage][step + n * 8 + pair * 2];
#pragma unroll
        for (int i = 0; i < 4; ++i) grads[n][i] = weights[n][i] * (grads[n][i] - (i % 2 ? dot.y : dot.x));
      }
      packLeft<T>(left, grads);
      shared.q[stage].template add<kStep / 16>(keySums, left, step);
    }
    head = nextHead, firstQuery = nextQuery, stage ^= 1;
  }
  if (start >= end) { // seen by nobody: what was asked for must not arrive behind the store
    commitCopies();
    waitForCopies<0>();
    __syncthreads();
  }
  shared.k.store(dk.at(block.batch, block.head, firstKey), dk.rowStride, keys - firstKey, warpRow, keySums, shape.scale,
                 shape.scale);
  shared.v.store(dv.at(block.batch, block.head, firstKey), dv.rowStride, keys - firstKey, warpRow, valueSums, 1.0f,
                 1.0f);
}
