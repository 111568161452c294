// needs: types.cuh vector.cuh
// What forward and backward attention share: the problem, who sees whom, tiles in shared memory.
//
// Query i of `queries` stands at position i + (length - queries) of the keys: with a KV cache the queries are the last
// ones. It sees key j when
//     j < length,
//     causal:       j <= position,
//     window >= 0:  j >= position - window         (window keys to its left and, when causal, itself),
//     keyMask:      keyMask[batch][j] != 0.
// A query that sees nothing gets zeros, and gives zero gradients.

struct AttentionShape {
  i64 batch, queryHeads, keyHeads; // keyHeads divides queryHeads: query head h reads key head h / (queryHeads/keyHeads)
  i64 queries, keys;               // rows of q, and of k and v (capacity, where keyLength is given)
  float scale;                     // scores are scale * q·k
  bool causal;
  i64 window;           // < 0: no window
  const u8 *keyMask;    // [batch][keys], or null
  const i32 *keyLength; // one number on the device: how many keys are valid; null: all
};

// [batch][rows][heads][kHeadSize] somewhere in memory: strides in elements, the last axis contiguous. Packed
// qkv[B][T][3][H][D]: q = {qkv, T*3*H*D, 3*H*D, D}, k = {qkv + H*D, ...}, v = {qkv + 2*H*D, ...}.
template <class T> struct HeadView {
  T *data;
  i64 batchStride, rowStride, headStride;
  __device__ T *at(i64 batch, i64 head, i64 row) const {
    return data + batch * batchStride + head * headStride + row * rowStride;
  }
};

struct AttentionSight { // the rule above for one batch entry
  i64 length, offset, window;
  bool causal;
  const u8 *mask; // of this batch entry, or null

  __device__ AttentionSight(const AttentionShape &shape, i64 batch) {
    length = shape.keys;
    if (shape.keyLength) {
      i64 given = *shape.keyLength;
      length = given < 0 ? 0 : given < shape.keys ? given : shape.keys;
    }
    offset = length - shape.queries;
    window = shape.window;
    causal = shape.causal;
    mask = shape.keyMask ? shape.keyMask + batch * shape.keys : nullptr;
  }
  __device__ bool sees(i64 query, i64 key) const {
    const i64 position = query + offset;
    return key < length && (!causal || key <= position) && (window < 0 || key >= position - window) &&
           (!mask || mask[key] != 0);
  }
  // No query of [first, last] sees a key outside [firstKey, endKey).
  __device__ i64 firstKey(i64 firstQuery) const {
    return window < 0 || firstQuery + offset < window ? 0 : firstQuery + offset - window;
  }
  __device__ i64 endKey(i64 lastQuery) const {
    const i64 end = causal ? lastQuery + offset + 1 : length;
    return end < length ? end : length;
  }
  // No key of [first, last] is seen by a query outside [firstQuery, endQuery).
  __device__ i64 firstQuery(i64 firstKey) const { return causal && firstKey > offset ? firstKey - offset : 0; }
  __device__ i64 endQuery(i64 lastKey, i64 queries) const {
    const i64 end = window < 0 ? queries : lastKey - offset + window + 1;
    return end < queries ? end : queries;
  }
};

// What is done to scaled scores, in f32: those of keys behind a query's position become a number, a bias is added. 0 is
// the stride of a dim that the bias is repeated along.
struct AttentionBias {
  static constexpr bool kThere = true;
  const float *data; // null: nothing is added
  i64 batchStride, headStride, queryStride, keyStride;
  bool fillsLater;
  float later;
  __device__ float scored(const AttentionSight &sight, i64 batch, i64 head, i64 query, i64 key, float score) const {
    if (fillsLater && key > query + sight.offset) score = later;
    return data ? score + data[batch * batchStride + head * headStride + query * queryStride + key * keyStride] : score;
  }
};
struct NoAttentionBias {
  static constexpr bool kThere = false;
  __device__ float scored(const AttentionSight &, i64, i64, i64, i64, float score) const { return score; }
};

// kRows rows of kHeadSize elements as f32 in shared memory, in groups of four. Padding elements are zero, and so are
// rows that do not exist. An odd pitch of groups: lanes that read different rows meet no bank conflict.
template <int kRows, int kHeadSize> struct RowTile {
  static constexpr int kGroups = (kHeadSize + 3) / 4;
  static constexpr int kPitch = kGroups | 1;
  float4 groups[kRows * kPitch];

  // All threads of the block; no barrier inside. `rows` rows exist from `source` on.
  template <class T> __device__ void fill(const T *source, i64 rowStride, i64 rows) {
    const bool vectors = kHeadSize % 4 == 0 && rowStride % 4 == 0 && vectorAligned<T, 4>(source);
    for (int i = threadIdx.x; i < kRows * kGroups; i += blockDim.x) {
      const int row = i / kGroups, group = i % kGroups;
      float four[4] = {0, 0, 0, 0};
      if (row < rows) {
        const T *p = source + row * rowStride + group * 4;
        if (vectors)
          loadVector(p, four);
        else
          for (int e = 0; e < 4; ++e)
            if (group * 4 + e < kHeadSize) four[e] = toFloat(p[e]);
      }
      groups[row * kPitch + group] = make_float4(four[0], four[1], four[2], four[3]);
    }
  }
  __device__ float4 at(int row, int group) const { return groups[row * kPitch + group]; }
};

// products[r][c] = a[firstRow + r] · b[firstColumn + c * columnStep], summed in ascending order.
template <int kRowsEach, int kColumnsEach, class TileA, class TileB>
__device__ inline void rowProducts(const TileA &a, const TileB &b, int firstRow, int firstColumn, int columnStep,
                                   float (&products)[kRowsEach][kColumnsEach]) {
#pragma unroll
  for (int r = 0; r < kRowsEach; ++r)
#pragma unroll
    for (int c = 0; c < kColumnsEach; ++c) products[r][c] = 0;
#pragma unroll 4
  for (int group = 0; group < TileA::kGroups; ++group) {
    float4 left[kRowsEach];
#pragma unroll
    for (int r = 0; r < kRowsEach; ++r) left[r] = a.at(firstRow + r, group);
#pragma unroll
    for (int c = 0; c < kColumnsEach; ++c) {
      const float4 right = b.at(firstColumn + c * columnStep, group);
#pragma unroll
      for (int r = 0; r < kRowsEach; ++r) {
        products[r][c] += left[r].x * right.x;
        products[r][c] += left[r].y * right.y;
        products[r][c] += left[r].z * right.z;
        products[r][c] += left[r].w * right.w;
      }
    }
  }
}

// sum += factor * four
__device__ inline void accumulate(float4 &sum, float factor, float4 four) {
  sum.x += factor * four.x, sum.y += factor * four.y, sum.z += factor * four.z, sum.w += factor * four.w;
}

// The elements of one group that exist, times `factor`, rounded to T.
template <int kHeadSize, class T> __device__ inline void storeGroup(T *row, int group, float4 four, float factor) {
  const float values[4] = {four.x * factor, four.y * factor, four.z * factor, four.w * factor};
  for (int e = 0; e < 4; ++e)
    if (group * 4 + e < kHeadSize) store(row + group * 4 + e, values[e]);
}
