// needs: types.cuh reduce.cuh vector.cuh attention_shape.cuh
// Attention backward on CUDA cores, three kernels, no atomics, so the same bits every run:
//
//   attentionDelta:      delta[i] = sum(dOut[i] * out[i])                                one warp a row
//   attentionQueryGrad:  dq = scale * dS·k       one block a tile of queries, over the keys
//   attentionKeyGrad:    dk = scale * dSᵀ·q, dv = Pᵀ·dOut      one block a tile of keys, over the query heads of the
//                                                              group and their queries
//   with P = exp(scale * q·k - logSumExp), dS = P * (dOut·v - delta)
//
// f32 throughout; with kRoundP, P and dS are rounded to T before the products that contract them. Strides of all seven
// views are free, so dq, dk, dv may be slices of one packed dqkv.
//
//   attentionDelta:     block 128,                                   grid.x = ceil(batch * queryHeads * queries / 4)
//   attentionQueryGrad: block AttentionBackwardTile<D>::kThreads,    grid.x = batch * queryHeads * ceil(queries /
//   kRows) attentionKeyGrad:   the same block,                              grid.x = batch * keyHeads * ceil(keys /
//   kRows)

template <int kHeadSize> struct AttentionBackwardTile {
  static_assert(kHeadSize >= 1 && kHeadSize <= 256, "head sizes 1 to 256");
  static constexpr int kRows = kHeadSize <= 64 ? 32 : kHeadSize <= 128 ? 16 : 8; // queries, and keys, of a tile
  static constexpr int kThreads = kHeadSize <= 128 ? 128 : 64;
  static constexpr int kColumnThreads = kHeadSize <= 64 || kHeadSize > 128 ? 8 : 16;
  static constexpr int kRowsEach = kRows * kColumnThreads / kThreads; // 2, 2, 1
  static constexpr int kColumnsEach = kRows / kColumnThreads;         // 4, 1, 1
};

// delta: [batch][queryHeads][queries]
template <int kHeadSize, class T>
__device__ inline void attentionDelta(HeadView<const T> out, HeadView<const T> dOut, float *delta,
                                      const AttentionShape &shape) {
  const i64 row = (i64)blockIdx.x * 4 + threadIdx.x / 32;
  if (row >= shape.batch * shape.queryHeads * shape.queries) return; // whole warps
  const i64 query = row % shape.queries, head = row / shape.queries % shape.queryHeads;
  const i64 batch = row / (shape.queries * shape.queryHeads);
  const T *o = out.at(batch, head, query), *grad = dOut.at(batch, head, query);
  float sum = 0;
  for (int i = threadIdx.x % 32; i < kHeadSize; i += 32) sum += toFloat(o[i]) * toFloat(grad[i]);
  sum = warpSum(sum);
  if (threadIdx.x % 32 == 0) delta[row] = sum;
}

// P and dS of this thread's rows and columns of one tile pair.
template <int kHeadSize, class QueryTile, class KeyTile> struct AttentionTilePair {
  typedef AttentionBackwardTile<kHeadSize> Tile;
  float weights[Tile::kRowsEach][Tile::kColumnsEach];   // P
  float gradients[Tile::kRowsEach][Tile::kColumnsEach]; // dS

  // logSumExp and delta: rows of this batch entry and head.
  __device__ AttentionTilePair(const QueryTile &q, const QueryTile &dOut, const KeyTile &k, const KeyTile &v,
                               const float *logSumExp, const float *delta, i64 firstQuery, i64 firstKey,
                               const AttentionSight &sight, const AttentionShape &shape) {
    const int row0 = threadIdx.x / Tile::kColumnThreads * Tile::kRowsEach, column0 = threadIdx.x % Tile::kColumnThreads;
    rowProducts(q, k, row0, column0, Tile::kColumnThreads, weights);
    rowProducts(dOut, v, row0, column0, Tile::kColumnThreads, gradients);
#pragma unroll
    for (int r = 0; r < Tile::kRowsEach; ++r) {
      const i64 query = firstQuery + row0 + r;
      const bool exists = query < shape.queries;
      const float rowSum = exists ? logSumExp[query] : 0.0f, rowDelta = exists ? delta[query] : 0.0f;
#pragma unroll
      for (int c = 0; c < Tile::kColumnsEach; ++c) {
        const bool seen = exists && sight.sees(query, firstKey + column0 + c * Tile::kColumnThreads);
        weights[r][c] = seen ? expf(weights[r][c] * shape.scale - rowSum) : 0.0f;
        gradients[r][c] = seen ? weights[r][c] * (gradients[r][c] - rowDelta) : 0.0f;
      }
    }
  }
};

template <int kHeadSize, bool kRoundP = true, class T>
__device__ inline void attentionQueryGrad(HeadView<const T> q, HeadView<const T> k, HeadView<const T> v,
                                          HeadView<const T> dOut, HeadView<T> dq, const float *logSumExp,
                                          const float *delta, const AttentionShape &shape) {
  typedef AttentionBackwardTile<kHeadSize> Tile;
  typedef RowTile<Tile::kRows, kHeadSize> Rows;
  constexpr int kRows = Tile::kRows, kColumnThreads = Tile::kColumnThreads, kRowsEach = Tile::kRowsEach;
  constexpr int kGroupsEach = (Rows::kGroups + kColumnThreads - 1) / kColumnThreads;
  __shared__ Rows queryTile, gradTile, keyTile, valueTile;
  __shared__ float scoreGrads[kRows][kRows + 1]; // dS [query][key]

  const i64 tiles = (shape.queries + kRows - 1) / kRows;
  const i64 head = blockIdx.x / tiles % shape.queryHeads, batch = blockIdx.x / (tiles * shape.queryHeads);
  const i64 keyHead = head / (shape.queryHeads / shape.keyHeads);
  const i64 turn = blockIdx.x % tiles;
  const i64 firstQuery = (shape.causal ? tiles - 1 - turn : turn) * kRows;
  const i64 rowOfHead = (batch * shape.queryHeads + head) * shape.queries;
  const int row0 = threadIdx.x / kColumnThreads * kRowsEach, column0 = threadIdx.x % kColumnThreads;
  const AttentionSight sight(shape, batch);

  float4 sums[kRowsEach][kGroupsEach];
#pragma unroll
  for (int r = 0; r < kRowsEach; ++r)
#pragma unroll
    for (int j = 0; j < kGroupsEach; ++j) sums[r][j] = make_float4(0, 0, 0, 0);
  queryTile.fill(q.at(batch, head, firstQuery), q.rowStride, shape.queries - firstQuery);
  gradTile.fill(dOut.at(batch, head, firstQuery), dOut.rowStride, shape.queries - firstQuery);

  const i64 lastQuery = firstQuery + kRows <= shape.queries ? firstQuery + kRows - 1 : shape.queries - 1;
  const i64 endKey = sight.endKey(lastQuery);
  for (i64 firstKey = sight.firstKey(firstQuery); firstKey < endKey; firstKey += kRows) {
    __syncthreads(); // the last round's keys are read
    keyTile.fill(k.at(batch, keyHead, firstKey), k.rowStride, sight.length - firstKey);
    valueTile.fill(v.at(batch, keyHead, firstKey), v.rowStride, sight.length - firstKey);
    __syncthreads();
    const AttentionTilePair<kHeadSize, Rows, Rows> pair(queryTile, gradTile, keyTile, valueTile, logSumExp + rowOfHead,
                                                        delta + rowOfHead, firstQuery, firstKey, sight, shape);
#pragma unroll
    for (int r = 0; r < kRowsEach; ++r)
#pragma unroll
      for (int c = 0; c < Tile::kColumnsEach; ++c)
        scoreGrads[row0 + r][column0 + c * kColumnThreads] =
            kRoundP ? toFloat(fromFloat<T>(pair.gradients[r][c])) : pair.gradients[r][c];
    __syncthreads();
#pragma unroll 2
    for (int key = 0; key < kRows; ++key)
#pragma unroll
      for (int j = 0; j < kGroupsEach; ++j) {
        const int group = column0 + j * kColumnThreads;
        if (group >= Rows::kGroups) continue;
        const float4 four = keyTile.at(key, group);
#pragma unroll
        for (int r = 0; r < kRowsEach; ++r) accumulate(sums[r][j], scoreGrads[row0 + r][key], four);
      }
  }
#pragma unroll
  for (int r = 0; r < kRowsEach; ++r) {
    if (firstQuery + row0 + r >= shape.queries) continue;
#pragma unroll
    for (int j = 0; j < kGroupsEach; ++j)
      storeGroup<kHeadSize>(dq.at(batch, head, firstQuery + row0 + r), column0 + j * kColumnThreads, sums[r][j],
                            shape.scale);
  }
}

// Rows of dk and dv beyond keyLength are written as zeros.
template <int kHeadSize, bool kRoundP = true, class T>
__device__ inline void attentionKeyGrad(HeadView<const T> q, HeadView<const T> k, HeadView<const T> v,
                                        HeadView<const T> dOut, HeadView<T> dk, HeadView<T> dv, const float *logSumExp,
                                        const float *delta, const AttentionShape &shape) {
  typedef AttentionBackwardTile<kHeadSize> Tile;
  typedef RowTile<Tile::kRows, kHeadSize> Rows;
  constexpr int kRows = Tile::kRows, kColumnThreads = Tile::kColumnThreads, kRowsEach = Tile::kRowsEach;
  constexpr int kGroupsEach = (Rows::kGroups + kColumnThreads - 1) / kColumnThreads;
  __shared__ Rows queryTile, gradTile, keyTile, valueTile;
  __shared__ float weights[kRows][kRows + 1], scoreGrads[kRows][kRows + 1]; // P, dS [query][key]

  const i64 tiles = (shape.keys + kRows - 1) / kRows;
  const i64 keyHead = blockIdx.x / tiles % shape.keyHeads, batch = blockIdx.x / (tiles * shape.keyHeads);
  const i64 firstKey = blockIdx.x % tiles * kRows; // causal: the first keys have the most queries
  const i64 group = shape.queryHeads / shape.keyHeads;
  const int row0 = threadIdx.x / kColumnThreads * kRowsEach, column0 = threadIdx.x % kColumnThreads;
  const AttentionSight sight(shape, batch);

  float4 keySums[kRowsEach][kGroupsEach], valueSums[kRowsEach][kGroupsEach];
#pragma unroll
  for (int r = 0; r < kRowsEach; ++r)
#pragma unroll
    for (int j = 0; j < kGroupsEach; ++j) keySums[r][j] = valueSums[r][j] = make_float4(0, 0, 0, 0);
  keyTile.fill(k.at(batch, keyHead, firstKey), k.rowStride, sight.length - firstKey);
  valueTile.fill(v.at(batch, keyHead, firstKey), v.rowStride, sight.length - firstKey);

  const i64 lastKey = firstKey + kRows <= shape.keys ? firstKey + kRows - 1 : shape.keys - 1;
  const i64 endQuery = firstKey < sight.length ? sight.endQuery(lastKey, shape.queries) : 0;
  for (i64 head = keyHead * group; head < (keyHead + 1) * group; ++head) {
    const i64 rowOfHead = (batch * shape.queryHeads + head) * shape.queries;
    for (i64 firstQuery = sight.firstQuery(firstKey); firstQuery < endQuery; firstQuery += kRows) {
      __syncthreads(); // the last round's queries are read
      queryTile.fill(q.at(batch, head, firstQuery), q.rowStride, shape.queries - firstQuery);
      gradTile.fill(dOut.at(batch, head, firstQuery), dOut.rowStride, shape.queries - firstQuery);
      __syncthreads();
      const AttentionTilePair<kHeadSize, Rows, Rows> pair(queryTile, gradTile, keyTile, valueTile,
                                                          logSumExp + rowOfHead, delta + rowOfHead, firstQuery,
                                                          firstKey, sight, shape);
#pragma unroll
      for (int r = 0; r < kRowsEach; ++r)
#pragma unroll
        for (int c = 0; c < Tile::kColumnsEach; ++c) {
          const int column = column0 + c * kColumnThreads;
          weights[row0 + r][column] = kRoundP ? toFloat(fromFloat<T>(pair.weights[r][c])) : pair.weights[r][c];
          scoreGrads[row0 + r][column] = kRoundP ? toFloat(fromFloat<T>(pair.gradients[r][c])) : pair.gradients[r][c];
        }
      __syncthreads();
#pragma unroll 2
      for (int query = 0; query < kRows; ++query) // from here on a thread's rows are keys
#pragma unroll
        for (int j = 0; j < kGroupsEach; ++j) {
          const int four = column0 + j * kColumnThreads;
          if (four >= Rows::kGroups) continue;
          const float4 gradOfOut = gradTile.at(query, four), queryRow = queryTile.at(query, four);
#pragma unroll
          for (int r = 0; r < kRowsEach; ++r) {
            accumulate(valueSums[r][j], weights[query][row0 + r], gradOfOut);
            accumulate(keySums[r][j], scoreGrads[query][row0 + r], queryRow);
          }
        }
    }
  }
#pragma unroll
  for (int r = 0; r < kRowsEach; ++r) {
    const i64 key = firstKey + row0 + r;
    if (key >= shape.keys) continue;
#pragma unroll
    for (int j = 0; j < kGroupsEach; ++j) {
      const int four = column0 + j * kColumnThreads;
      storeGroup<kHeadSize>(dk.at(batch, keyHead, key), four, keySums[r][j], shape.scale);
      storeGroup<kHeadSize>(dv.at(batch, keyHead, key), four, valueSums[r][j], 1.0f);
    }
  }
}
