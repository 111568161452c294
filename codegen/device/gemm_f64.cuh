// needs: types.cuh gemm_simt.cuh
// The same contract as gemmSimt (operands, epilogue, partials; tiles of 16 x 16) in double: for f64 programs, which
// want to be right rather than fast. The epilogue's last parameter is a double; partials are doubles or floats.
//
//   launch: grid.x = batch * ceil(M / 16) * ceil(N / 16), block = 256
struct GemmTileF64 {
  static constexpr int kRows = 16, kColumns = 16;
};

template <bool kTransposeA, bool kTransposeB, class A, class B, class Epilogue, class Partial>
__device__ inline void gemmF64(const GemmOperands<A, B> &operands, const Epilogue &epilogue, Partial *partials) {
  __shared__ double tileA[16][17], tileB[16][17]; // [row][k], [k][column]
  const i64 rowTiles = (operands.M + 15) / 16, columnTiles = (operands.N + 15) / 16;
  const i64 columnTile = blockIdx.x % columnTiles, rowTile = blockIdx.x / columnTiles % rowTiles;
  const i64 batch = blockIdx.x / (columnTiles * rowTiles);
  const int y = threadIdx.x / 16, x = threadIdx.x % 16;
  const i64 row = rowTile * 16 + y, column = columnTile * 16 + x;
  const A *a = operands.a + batch * operands.strideA;
  const B *b = operands.b + batch * operands.strideB;

  double sum = 0;
  for (i64 first = 0; first < operands.K; first += 16) {
    const i64 kA = first + x, kB = first + y;
    tileA[y][x] = row < operands.M && kA < operands.K
                      ? (double)load(a + (kTransposeA ? kA * operands.lda + row : row * operands.lda + kA))
                      : 0.0;
    tileB[y][x] = column < operands.N && kB < operands.K
                      ? (double)load(b + (kTransposeB ? column * operands.ldb + kB : kB * operands.ldb + column))
                      : 0.0;
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum += tileA[y][k] * tileB[k][x];
    __syncthreads();
  }
  double value = 0;
  if (row < operands.M && column < operands.N) value = epilogue(batch, row, column, sum);
  if (Epilogue::kColumnSum) {
    tileA[y][x] = value; // rows outside add 0
    __syncthreads();
    if (y == 0 && column < operands.N) {
      double total = 0;
      for (int r = 0; r < 16; ++r) total += tileA[r][x];
      partials[(batch * rowTiles + rowTile) * operands.N + column] = (Partial)total;
    }
  }
}
