// needs: types.cuh vector.cuh
// C[M][N] = A·B on CUDA cores: f32 accumulators, any sizes, any transposes, any storage types that widen to float. One
// block computes one tile of C; the epilogue is the caller's, so bias, GELU, residual, quantisation ... cost no pass.
//
//   struct Epilogue {                                     // what codegen generates
//     bf16 *y;  const float *bias;  i64 ldc;
//     static constexpr bool kColumnSum = false;
//     __device__ float operator()(i64 batch, i64 row, i64 column, float sum) const {
//       float value = sum + bias[column];
//       store(y + row * ldc + column, value);
//       return value;                                     // what column sums would add up
//     }
//   };
//   extern "C" __global__ void __launch_bounds__(256) linear(const bf16 *x, const bf16 *w, ...) {
//     GemmOperands<bf16, bf16> operands = {x, w, M, N, K, lda, ldb, 0, 0};
//     gemmSimt<GemmTile128, false, true>(operands, Epilogue{...}, (float *)nullptr);
//   }
//   launch: grid.x = gemmBlocks = batch * ceil(M / Tile::kRows) * ceil(N / Tile::kColumns), block = 256
//
// The epilogue sees each element of C once, consecutive threads have consecutive columns (so its loads and stores
// coalesce whatever they are), and a thread's elements come in ascending row order. With kColumnSum, the sum over the
// tile's rows of what it returns goes to partials[batch * rowTiles + rowTile][N], always in the same order;
// columnTotals() of partials.cuh adds the tiles up. Sums over K run in ascending order in one accumulator: deterministic.

struct GemmTile128 { // large products: 8 x 8 accumulators a thread
  static constexpr int kRows = 128, kColumns = 128, kDepth = 8;
};
struct GemmTile64 { // small ones: four times the blocks
  static constexpr int kRows = 64, kColumns = 64, kDepth = 16;
};

template <class A, class B> struct GemmOperands {
  const A *a; // [M][K] with row stride lda; transposed: [K][M]
  const B *b; // [K][N] with row stride ldb; transposed: [N][K]
  i64 M, N, K;
  i64 lda, ldb;         // in elements
  i64 strideA, strideB; // from one batch entry to the next, in elements; 0 shares the operand
};

// One operand's way from global memory through registers into shared memory. The tile is [kDepth][kExtent] in shared
// memory (extent: rows of A, columns of B); in global memory either the extent or the depth is contiguous. Every thread
// carries 4 elements that are neighbours in global memory.
template <class T, int kExtent, int kDepth, bool kDepthContiguous> struct GemmFetch {
  static_assert(kExtent * kDepth == 1024, "256 threads carry 4 elements each");
  static constexpr int kPitch = kExtent + 4; // keeps float4 alignment, spreads the transposing stores over the banks

  const T *base; // first element of the tile's extent, depth 0
  i64 pitch;     // elements between neighbours on the strided axis
  i64 extentLeft, depthTotal;
  int extent, depth; // this thread's first element within the tile
  bool vectors;      // groups of 4 are aligned
  float held[4];

  __device__ GemmFetch(const T *operand, i64 ld, i64 firstExtent, i64 extentTotal, i64 K) {
    const int thread = threadIdx.x;
    if (kDepthContiguous)
      depth = thread % (kDepth / 4) * 4, extent = thread / (kDepth / 4);
    else
      extent = thread % (kExtent / 4) * 4, depth = thread / (kExtent / 4);
    base = operand + (kDepthContiguous ? firstExtent * ld : firstExtent);
    pitch = ld;
    extentLeft = extentTotal - firstExtent;
    depthTotal = K;
    vectors = ld % 4 == 0 && vectorAligned<T, 4>(operand); // firstExtent and the group are multiples of 4
  }

  __device__ void load(i64 firstDepth) { // global -> registers
    const i64 k = firstDepth + depth;
    const T *p = base + (kDepthContiguous ? extent * pitch + k : k * pitch + extent);
    const i64 contiguousLeft = kDepthContiguous ? depthTotal - k : extentLeft - extent;
    const bool line = kDepthContiguous ? extent < extentLeft : k < depthTotal;
    if (line && vectors && contiguousLeft >= 4) {
      loadVector(p, held);
      return;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) held[i] = line && i < contiguousLeft ? toFloat(p[i]) : 0.0f;
  }

  __device__ void put(float *tile) const { // registers -> shared
#pragma unroll
    for (int i = 0; i < 4; ++i)
      tile[kDepthContiguous ? (depth + i) * kPitch + extent : depth * kPitch + extent + i] = held[i];
  }
};

template <class Tile, bool kTransposeA, bool kTransposeB, class A, class B, class Epilogue>
__device__ inline void gemmSimt(const GemmOperands<A, B> &operands, const Epilogue &epilogue, float *partials) {
  constexpr int kRows = Tile::kRows, kColumns = Tile::kColumns, kDepth = Tile::kDepth;
  constexpr int kRowGroups = kRows / 64, kColumnGroups = kColumns / 64; // a thread has 4 rows and columns of each group
  typedef GemmFetch<A, kRows, kDepth, !kTransposeA> FetchA;
  typedef GemmFetch<B, kColumns, kDepth, kTransposeB> FetchB;
  __shared__ float4 tilesA[2][kDepth * FetchA::kPitch / 4]; // [stage][k][row]
  __shared__ float4 tilesB[2][kDepth * FetchB::kPitch / 4]; // [stage][k][column]

  const i64 rowTiles = (operands.M + kRows - 1) / kRows, columnTiles = (operands.N + kColumns - 1) / kColumns;
  const i64 columnTile = blockIdx.x % columnTiles, rowTile = blockIdx.x / columnTiles % rowTiles;
  const i64 batch = blockIdx.x / (columnTiles * rowTiles);
  const i64 firstRow = rowTile * kRows, firstColumn = columnTile * kColumns;
  const int threadRow = threadIdx.x / 16, threadColumn = threadIdx.x % 16;

  FetchA fetchA(operands.a + batch * operands.strideA, operands.lda, firstRow, operands.M, operands.K);
  FetchB fetchB(operands.b + batch * operands.strideB, operands.ldb, firstColumn, operands.N, operands.K);

  float sums[kRowGroups * 4][kColumnGroups * 4];
#pragma unroll
  for (int i = 0; i < kRowGroups * 4; ++i)
#pragma unroll
    for (int j = 0; j < kColumnGroups * 4; ++j) sums[i][j] = 0;

  // Main loop: while one stage is multiplied, the next is on its way into registers.
  const i64 steps = (operands.K + kDepth - 1) / kDepth;
  if (steps > 0) {
    fetchA.load(0);
    fetchB.load(0);
    fetchA.put((float *)tilesA[0]);
    fetchB.put((float *)tilesB[0]);
  }
  __syncthreads();
  for (i64 step = 0; step < steps; ++step) {
    const bool more = step + 1 < steps;
    if (more) {
      fetchA.load((step + 1) * kDepth);
      fetchB.load((step + 1) * kDepth);
    }
    const float4 *tileA = tilesA[step % 2], *tileB = tilesB[step % 2];
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      float a[kRowGroups * 4], b[kColumnGroups * 4];
#pragma unroll
      for (int group = 0; group < kRowGroups; ++group) {
        float4 four = tileA[k * (FetchA::kPitch / 4) + group * 16 + threadRow];
        a[group * 4] = four.x, a[group * 4 + 1] = four.y, a[group * 4 + 2] = four.z, a[group * 4 + 3] = four.w;
      }
#pragma unroll
      for (int group = 0; group < kColumnGroups; ++group) {
        float4 four = tileB[k * (FetchB::kPitch / 4) + group * 16 + threadColumn];
        b[group * 4] = four.x, b[group * 4 + 1] = four.y, b[group * 4 + 2] = four.z, b[group * 4 + 3] = four.w;
      }
#pragma unroll
      for (int i = 0; i < kRowGroups * 4; ++i)
#pragma unroll
        for (int j = 0; j < kColumnGroups * 4; ++j) sums[i][j] += a[i] * b[j];
    }
    if (more) { // the other stage: everybody left it before the last barrier
      fetchA.put((float *)tilesA[(step + 1) % 2]);
      fetchB.put((float *)tilesB[(step + 1) % 2]);
    }
    __syncthreads();
  }

  // Epilogue: 16 rows at a time go through shared memory (the main loop's, free now), so that consecutive threads have
  // consecutive columns. Staged row t belongs to thread row t.
  constexpr int kThreadsDown = 256 / kColumns, kRowsEach = 16 / kThreadsDown;
  static_assert(sizeof(tilesA) >= 16 * kColumns * sizeof(float), "16 staged rows fit into A's stages");
  float *staged = (float *)tilesA; // [16][kColumns]
  const int columnInTile = threadIdx.x % kColumns, down = threadIdx.x / kColumns;
  const i64 column = firstColumn + columnInTile;
  float columnSum = 0;
#pragma unroll
  for (int i = 0; i < kRowGroups * 4; ++i) {
#pragma unroll
    for (int group = 0; group < kColumnGroups; ++group)
      ((float4 *)staged)[threadRow * (kColumns / 4) + group * 16 + threadColumn] =
          make_float4(sums[i][group * 4], sums[i][group * 4 + 1], sums[i][group * 4 + 2], sums[i][group * 4 + 3]);
    __syncthreads();
    for (int r = 0; r < kRowsEach; ++r) {
      const int stagedRow = down * kRowsEach + r;
      const i64 row = firstRow + i / 4 * 64 + stagedRow * 4 + i % 4;
      if (row < operands.M && column < operands.N) {
        float value = epilogue(batch, row, column, staged[stagedRow * kColumns + columnInTile]);
        if (Epilogue::kColumnSum) columnSum += value;
      }
    }
    __syncthreads();
  }
  if (Epilogue::kColumnSum) {
    staged[threadIdx.x] = columnSum; // [kThreadsDown][kColumns]
    __syncthreads();
    if (down == 0 && column < operands.N) {
      float total = staged[columnInTile];
      for (int i = 1; i < kThreadsDown; ++i) total += staged[i * kColumns + columnInTile];
      partials[(batch * rowTiles + rowTile) * operands.N + column] = total;
    }
  }
}
