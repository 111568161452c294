// needs: types.cuh math.cuh mma_sm80.cuh attention_shape.cuh
// Attention forward on tensor cores (sm_80 and later): out = softmax(scale * q·kᵀ) · v, the online softmax of
// attention_simt.cuh, with a bias as there. For bf16 and f16, head sizes that are multiples of 8 up to 128, scale > 0,
// rows of 16-byte groups.
//
//   block = 128, grid.x = batch * queryHeads * ceil(queries / 64)
//   dynamic shared memory = AttentionMmaForward<D, T>::kSharedBytes        46 KB at D = 64, 87 KB at 128
//   attentionForwardMma<D>(q, k, v, out, logSumExp, shape[, bias]);
//   logSumExp: [batch][queryHeads][queries] = log(sum(exp(scores))), -Inf for a row that sees nothing; may be null
//
// Four warps have 16 queries each and walk over the keys in tiles of 64; while one tile is worked on, the next is
// copied. Scores and sums are f32 in registers. The weights exp(s - running maximum) are rounded to T before they meet
// v: they are the left operand of a tensor-core product (the normaliser sums them unrounded). Deterministic: a row's
// sums run over the keys in one fixed order.

// Blocks to (head, tile): groups of 32 heads, so that what a group reads stays in L2; within one, the tiles with the
// most work first, so that the last blocks to start are short.
struct AttentionBlock {
  int batch, head, tile;

  // `heads`: of a batch entry; `lastFirst`: the last tiles have the most work.
  __device__ AttentionBlock(i64 batches, i64 heads, int tiles, bool lastFirst) {
    const u32 group = blockIdx.x / (32u * tiles), all = (u32)(batches * heads);
    const u32 members = all - group * 32u < 32u ? all - group * 32u : 32u;
    const u32 within = blockIdx.x - group * 32u * tiles, row = group * 32u + within % members;
    tile = lastFirst ? tiles - 1 - (int)(within / members) : (int)(within / members);
    batch = row / (u32)heads, head = row % (u32)heads;
  }
};

// The keys [low, high) that a query may see, but for the mask.
struct AttentionRange {
  int low, high;
  __device__ AttentionRange(const AttentionSight &sight, i64 query) {
    low = (int)sight.firstKey(query), high = (int)sight.endKey(query);
  }
  __device__ bool has(int key) const { return key >= low && key < high; }
};

template <int kHeadSize, class T> struct AttentionMmaForward {
  static constexpr int kThreads = 128, kQueries = 64, kKeys = 64;
  typedef MmaTile<T, 64, kHeadSize, kThreads> Tile;
  static constexpr int kWidth = Tile::kWidth;
  static constexpr int kSharedBytes = 5 * sizeof(Tile); // q, then k and v twice

  u32 query[kWidth / 16][4]; // left operand
  float sums[kWidth / 8][4]; // unnormalised output
  float largest[2];          // of rows group and group + 8: the running maximum of scores,
  float total[2];            // this lane's part of the normaliser,
  int low[2], high[2];       // and the keys that may be seen, but for the mask

  __device__ AttentionMmaForward(const AttentionSight &sight, i64 firstRow) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const AttentionRange range(sight, firstRow + threadIdx.x % 32 / 4 + 8 * r);
      low[r] = range.low, high[r] = range.high;
      largest[r] = -bitsToFloat(0x7f800000u), total[r] = 0;
    }
    clear(sums);
  }

  // Keys firstKey .. firstKey + 63. kEdge: some key is not seen by some row; `steps`: no row of this warp sees keys
  // beyond firstKey + 16 * steps. scale: of the scores, in powers of two. withBias(r, key, score): the score of row
  // group + 8 * r with its bias.
  template <bool kEdge, bool kBias, class BiasOf>
  __device__ void addKeys(const Tile &k, const Tile &v, int firstKey, int steps, const u8 *mask, float scale,
                          const BiasOf &withBias) {
    float scores[kKeys / 8][4]; // then weights
    clear(scores);
    constexpr int kDepth = kWidth / 16, kProducts = kKeys / 16 * kDepth;
#pragma unroll
    for (int i = 0; i < kProducts; ++i) { // one loop each: the schedule is 3 to 6 % better than that of two
      const int n = i / kDepth, d = i % kDepth;
      if (kEdge && n >= steps) break;
      u32 b[4];
      k.loadRightTransposed(b, n * 16, d * 16);
      mma16x8x16<T>(scores[2 * n], query[d], b[0], b[1]);
      mma16x8x16<T>(scores[2 * n + 1], query[d], b[2], b[3]);
    }
    if (kEdge) {
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int key = firstKey + n * 8 + threadIdx.x % 4 * 2 + i % 2;
          const bool seen = key >= low[i / 2] && key < high[i / 2] && (!mask || mask[key] != 0);
          if (kBias && seen) scores[n][i] = withBias(i / 2, key, scores[n][i]);
          if (!seen) scores[n][i] = -bitsToFloat(0x7f800000u);
        }
    } else if (kBias) {
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          scores[n][i] = withBias(i / 2, firstKey + n * 8 + threadIdx.x % 4 * 2 + i % 2, scores[n][i]);
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float highest = largest[r];
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) highest = fmaxf(highest, fmaxf(scores[n][2 * r], scores[n][2 * r + 1]));
      highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 1)); // the four lanes of a row
      highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 2));
      const float reference = highest == -bitsToFloat(0x7f800000u) ? 0.0f : highest * scale; // nothing seen: 2^-Inf = 0
      const float shrink = math::unitExp2(largest[r] * scale - reference);
      largest[r] = highest;
      float added = 0;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
        for (int i = 2 * r; i < 2 * r + 2; ++i) {
          scores[n][i] = math::unitExp2(scores[n][i] * scale - reference);
          added += scores[n][i];
        }
      total[r] = total[r] * shrink + added;
#pragma unroll
      for (int n = 0; n < kWidth / 8; ++n) sums[n][2 * r] *= shrink, sums[n][2 * r + 1] *= shrink;
    }
    u32 weights[kKeys / 16][4];
    packLeft<T>(weights, scores);
#pragma unroll
    for (int i = 0; i < kProducts; ++i) {
      const int n = i / kDepth, d = i % kDepth;
      if (kEdge && n >= steps) break;
      u32 b[4];
      v.loadRight(b, n * 16, d * 16);
      mma16x8x16<T>(sums[2 * d], weights[n], b[0], b[1]);
      mma16x8x16<T>(sums[2 * d + 1], weights[n], b[2], b[3]);
    }
  }
};

template <int kHeadSize, class T, class Bias = NoAttentionBias>
__device__ inline void attentionForwardMma(HeadView<const T> q, HeadView<const T> k, HeadView<const T> v,
                                           HeadView<T> out, float *logSumExp, const AttentionShape &shape,
                                           const Bias &bias = Bias()) {
  typedef AttentionMmaForward<kHeadSize, T> Warp;
  typedef typename Warp::Tile Tile;
  extern __shared__ __align__(16) u8 attentionMemory[];
  Tile &queryTile = *(Tile *)attentionMemory;
  Tile *keyTiles = (Tile *)attentionMemory + 1, *valueTiles = (Tile *)attentionMemory + 3; // two each

  const int queries = (int)shape.queries, group = (int)(shape.queryHeads / shape.keyHeads);
  const AttentionBlock block(shape.batch, shape.queryHeads, (queries + 63) / 64, shape.causal);
  const int firstQuery = block.tile * 64, lastQuery = (firstQuery + 64 < queries ? firstQuery + 64 : queries) - 1;
  const int warpRow = threadIdx.x / 32 * 16, lane = threadIdx.x % 32;
  const AttentionSight sight(shape, block.batch);
  const AttentionRange first(sight, firstQuery), last(sight, lastQuery); // the least, and the most, that is seen
  const int warpEnd = (int)sight.endKey(firstQuery + warpRow + 15);
  const T *keys = k.at(block.batch, block.head / group, 0), *values = v.at(block.batch, block.head / group, 0);

  Warp warp(sight, firstQuery + warpRow);
  queryTile.fill(q.at(block.batch, block.head, firstQuery), q.rowStride, queries - firstQuery);
  auto fetch = [&](int firstKey, int stage) {
    if (firstKey < last.high) {
      keyTiles[stage].fill(keys + firstKey * k.rowStride, k.rowStride, (int)sight.length - firstKey);
      valueTiles[stage].fill(values + firstKey * v.rowStride, v.rowStride, (int)sight.length - firstKey);
    }
    commitCopies();
  };
  const int start = first.low / 64 * 64;
  fetch(start, 0);
  // Scores are q·k, or with a bias scale * q·k + bias. A bias of the lowest number must not become -Inf in powers of
  // two.
  const float unit = Bias::kThere ? 1.0f : shape.scale, scale = unit * 1.4426950408889634f; // exp(x) = 2^(x / ln 2)
  const auto withBias = [&](int r, int key, float score) {
    const int row = firstQuery + warpRow + lane / 4 + 8 * r;
    const float sum =
        bias.scored(sight, block.batch, block.head, row < queries ? row : queries - 1, key, score * shape.scale);
    return sum == -bitsToFloat(0x7f800000u) ? sum : fmaxf(sum, -2e38f);
  };
  int stage = 0;
  for (int firstKey = start; firstKey < last.high; firstKey += 64, stage ^= 1) {
    waitForCopies<0>();
    __syncthreads(); // this tile is there for all, and all are done with the one before
    if (firstKey == start) queryTile.loadLeft(warp.query, warpRow);
    fetch(firstKey + 64, stage ^ 1);
    const bool all = !sight.mask && firstKey >= last.low && firstKey + 64 <= first.high;
    if (all)
      warp.template addKeys<false, Bias::kThere>(keyTiles[stage], valueTiles[stage], firstKey, 4, sight.mask, scale,
                                                 withBias);
    else
      warp.template addKeys<true, Bias::kThere>(keyTiles[stage], valueTiles[stage], firstKey,
                                                (warpEnd - firstKey + 15) / 16, sight.mask, scale, withBias);
  }
  waitForCopies<0>();
  if (start >= last.high) __syncthreads(); // no key is seen: q must not arrive behind the store

#pragma unroll
  for (int r = 0; r < 2; ++r) {
    warp.total[r] += __shfl_xor_sync(0xffffffffu, warp.total[r], 1);
    warp.total[r] += __shfl_xor_sync(0xffffffffu, warp.total[r], 2);
  }
  const float inverse[2] = {warp.total[0] == 0 ? 0.0f : 1.0f / warp.total[0],
                            warp.total[1] == 0 ? 0.0f : 1.0f / warp.total[1]};
  queryTile.store(out.at(block.batch, block.head, firstQuery), out.rowStride, queries - firstQuery, warpRow, warp.sums,
                  inverse[0], inverse[1]);
  if (!logSumExp || lane % 4 != 0) return;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int query = firstQuery + warpRow + lane / 4 + 8 * r;
    if (query < queries)
      logSumExp[((i64)block.batch * shape.queryHeads + block.head) * queries + query] =
          warp.largest[r] * unit + logf(warp.total[r]);
  }
}
