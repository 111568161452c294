// needs: types.cuh vector.cuh attention_shape.cuh
// Attention forward on CUDA cores: out = softmax(scale * q·kᵀ) · v without the score matrix in memory. Online softmax:
// a block keeps kQueries rows and walks over the keys; when the running maximum of a row grows, what is summed so far
// is scaled down. A bias, where there is one, is added to the scaled scores. f32 throughout; with kRoundP the weights
// exp(s - running maximum) are rounded to T before they meet v (the normaliser sums them unrounded).
//
//   block = AttentionTile<D>::kThreads, grid.x = batch * queryHeads * ceil(queries / AttentionTile<D>::kQueries)
//   attentionForward<D>(q, k, v, out, logSumExp, shape[, bias]);
//   logSumExp: [batch][queryHeads][queries] = log(sum(exp(scores))), -Inf for a row that sees nothing; may be null
//
// Deterministic: a row's sums run over the keys in ascending order. 33 to 37 KB of shared memory.

template <int kHeadSize> struct AttentionTile {
  static_assert(kHeadSize >= 1 && kHeadSize <= 256, "head sizes 1 to 256");
  static constexpr int kThreads = 128;
  static constexpr int kColumnThreads = kHeadSize <= 64 ? 8 : 16;        // neighbours that share rows
  static constexpr int kRowsEach = kHeadSize <= 128 ? 4 : 2;             // rows a thread
  static constexpr int kQueries = kThreads / kColumnThreads * kRowsEach; // 64, 32, 16
  static constexpr int kKeys = kHeadSize <= 128 ? 32 : 16;
};

template <int kHeadSize, bool kRoundP = true, class T, class Bias = NoAttentionBias>
__device__ inline void attentionForward(HeadView<const T> q, HeadView<const T> k, HeadView<const T> v, HeadView<T> out,
                                        float *logSumExp, const AttentionShape &shape, const Bias &bias = Bias()) {
  typedef AttentionTile<kHeadSize> Tile;
  constexpr int kRowsEach = Tile::kRowsEach, kColumnThreads = Tile::kColumnThreads;
  constexpr int kQueries = Tile::kQueries, kKeys = Tile::kKeys, kColumnsEach = kKeys / kColumnThreads;
  typedef RowTile<kQueries, kHeadSize> QueryTile;
  constexpr int kGroups = QueryTile::kGroups, kGroupsEach = (kGroups + kColumnThreads - 1) / kColumnThreads;
  __shared__ QueryTile queryTile;
  __shared__ RowTile<kKeys, kHeadSize> keyTile; // k, then v, of the same keys
  __shared__ float weights[kQueries][kKeys + 1];

  const i64 tiles = (shape.queries + kQueries - 1) / kQueries;
  const i64 head = blockIdx.x / tiles % shape.queryHeads, batch = blockIdx.x / (tiles * shape.queryHeads);
  const i64 keyHead = head / (shape.queryHeads / shape.keyHeads);
  const i64 turn = blockIdx.x % tiles;
  const i64 firstQuery = (shape.causal ? tiles - 1 - turn : turn) * kQueries; // causal: the longest rows start first
  const int row0 = threadIdx.x / kColumnThreads * kRowsEach, column0 = threadIdx.x % kColumnThreads;
  const AttentionSight sight(shape, batch);

  float largest[kRowsEach], total[kRowsEach]; // running maximum and normaliser, the same in all column threads
  float4 sums[kRowsEach][kGroupsEach];        // unnormalised output: groups column0 + j * kColumnThreads
#pragma unroll
  for (int r = 0; r < kRowsEach; ++r) {
    largest[r] = -bitsToFloat(0x7f800000u), total[r] = 0;
#pragma unroll
    for (int j = 0; j < kGroupsEach; ++j) sums[r][j] = make_float4(0, 0, 0, 0);
  }
  queryTile.fill(q.at(batch, head, firstQuery), q.rowStride, shape.queries - firstQuery);

  const i64 lastQuery = firstQuery + kQueries <= shape.queries ? firstQuery + kQueries - 1 : shape.queries - 1;
  const i64 endKey = sight.endKey(lastQuery);
  for (i64 firstKey = sight.firstKey(firstQuery); firstKey < endKey; firstKey += kKeys) {
    __syncthreads(); // v of the last round is read
    keyTile.fill(k.at(batch, keyHead, firstKey), k.rowStride, sight.length - firstKey);
    __syncthreads();
    float scores[kRowsEach][kColumnsEach];
    rowProducts(queryTile, keyTile, row0, column0, kColumnThreads, scores);

#pragma unroll
    for (int r = 0; r < kRowsEach; ++r) {
      bool seen[kColumnsEach];
      float highest = largest[r];
#pragma unroll
      for (int c = 0; c < kColumnsEach; ++c) {
        seen[c] = firstQuery + row0 + r < shape.queries &&
                  sight.sees(firstQuery + row0 + r, firstKey + column0 + c * kColumnThreads);
        scores[r][c] *= shape.scale;
        if (Bias::kThere && seen[c])
          scores[r][c] = bias.scored(sight, batch, head, firstQuery + row0 + r, firstKey + column0 + c * kColumnThreads,
                                     scores[r][c]);
        if (seen[c]) highest = fmaxf(highest, scores[r][c]);
      }
#pragma unroll
      for (int distance = kColumnThreads / 2; distance > 0; distance /= 2)
        highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, distance));
      const float reference = highest == -bitsToFloat(0x7f800000u) ? 0.0f : highest; // nothing seen yet: exp(-Inf) = 0
      const float shrink = expf(largest[r] - reference);
      largest[r] = highest;
      float added = 0;
#pragma unroll
      for (int c = 0; c < kColumnsEach; ++c) {
        const float weight = seen[c] ? expf(scores[r][c] - reference) : 0.0f;
        added += weight;
        weights[row0 + r][column0 + c * kColumnThreads] = kRoundP ? toFloat(fromFloat<T>(weight)) : weight;
      }
#pragma unroll
      for (int distance = kColumnThreads / 2; distance > 0; distance /= 2)
        added += __shfl_xor_sync(0xffffffffu, added, distance);
      total[r] = total[r] * shrink + added;
#pragma unroll
      for (int j = 0; j < kGroupsEach; ++j) {
        sums[r][j].x *= shrink, sums[r][j].y *= shrink, sums[r][j].z *= shrink, sums[r][j].w *= shrink;
      }
    }
    __syncthreads(); // k is read, the weights are written
    keyTile.fill(v.at(batch, keyHead, firstKey), v.rowStride, sight.length - firstKey);
    __syncthreads();
#pragma unroll 2
    for (int key = 0; key < kKeys; ++key)
#pragma unroll
      for (int j = 0; j < kGroupsEach; ++j) {
        const int group = column0 + j * kColumnThreads;
        if (group >= kGroups) continue;
        const float4 value = keyTile.at(key, group);
#pragma unroll
        for (int r = 0; r < kRowsEach; ++r) accumulate(sums[r][j], weights[row0 + r][key], value);
      }
  }

#pragma unroll
  for (int r = 0; r < kRowsEach; ++r) {
    const i64 query = firstQuery + row0 + r;
    if (query >= shape.queries) continue;
    const float inverse = total[r] == 0 ? 0.0f : 1.0f / total[r];
#pragma unroll
    for (int j = 0; j < kGroupsEach; ++j)
      storeGroup<kHeadSize>(out.at(batch, head, query), column0 + j * kColumnThreads, sums[r][j], inverse);
    if (logSumExp && column0 == 0)
      logSumExp[(batch * shape.queryHeads + head) * shape.queries + query] = largest[r] + logf(total[r]);
  }
}
