#include "runtime/cpu/gemm/gemm.h"

#include "runtime/cpu/gemm/kernel.h"
#include "runtime/cpu/parallel.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MathExtras.h"
#include <cassert>
#include <cstring>
#include <memory>

namespace fusor::runtime {

using namespace gemm_kernel;

namespace {

/// Tiles are cut at multiples of a register panel: 4 rows; 48 columns (AVX-512) or 24 (AVX2) or 12 (SSE).
constexpr int64_t kRowStep = 4;
constexpr int64_t kColStep = 48;
/// Enough tiles for a few cores to finish together, unless they would get so small that packing shows.
constexpr int64_t kWantedTiles = 16;
constexpr int64_t kMinTileFlops = 2'000'000;

struct FreeAligned {
  void operator()(float *memory) const { std::free(memory); }
};

float *packingBuffer() {
  // Per thread and never given back: a fresh buffer would page-fault for longer than a small product takes.
  thread_local std::unique_ptr<float, FreeAligned> buffer(
      static_cast<float *>(std::aligned_alloc(64, kWorkspaceFloats * sizeof(float))));
  if (!buffer) llvm::report_bad_alloc_error("no memory for the GEMM packing buffer");
  return buffer.get();
}

void accumulate(const Block &block, Isa isa) {
  switch (isa) {
  case Isa::Baseline: return baseline::accumulate(block);
#ifdef FUSOR_CPU_X86
  case Isa::Avx2: return avx2::accumulate(block);
  case Isa::Avx512: return avx512::accumulate(block);
#else
  default: break;
#endif
  }
  llvm_unreachable("an instruction set that isSupported() refuses");
}

void packB(const Block &block, float *packed, Isa isa) {
  switch (isa) {
  case Isa::Baseline: return baseline::packB(block, packed);
#ifdef FUSOR_CPU_X86
  case Isa::Avx2: return avx2::packB(block, packed);
  case Isa::Avx512: return avx512::packB(block, packed);
#else
  default: break;
#endif
  }
  llvm_unreachable("an instruction set that isSupported() refuses");
}

/// Splits `extent` into as few equal parts as `maximum` allows, each a multiple of `step`.
int64_t evenPart(int64_t extent, int64_t maximum, int64_t step) {
  int64_t parts = std::max<int64_t>(1, llvm::divideCeil(extent, maximum));
  return llvm::alignTo(std::max<int64_t>(1, llvm::divideCeil(extent, parts)), step);
}

/// A tile multiplies rows * cols times for every rows + cols elements it packs.
bool packsWell(int64_t rows, int64_t cols) { return rows * cols >= 32 * (rows + cols); }

} // namespace

GemmTiling::GemmTiling(int64_t M, int64_t N, int64_t K)
    : M(M), N(N), tileRows(evenPart(M, kMaxRows, kRowStep)), tileCols(evenPart(N, kMaxCols, kColStep)) {
  auto count = [&] { return int64_t(llvm::divideCeil(M, tileRows) * llvm::divideCeil(N, tileCols)); };
  while (count() < kWantedTiles && tileRows * tileCols * K > kMinTileFlops) {
    // Rows first, and narrow C never by columns: N is often 128, and 48 does not divide it.
    int64_t rows = evenPart(tileRows, llvm::divideCeil(tileRows, 2), kRowStep);
    int64_t cols = evenPart(tileCols, llvm::divideCeil(tileCols, 2), kColStep);
    if (4 * tileRows >= tileCols && rows < tileRows && packsWell(rows, tileCols))
      tileRows = rows;
    else if (tileCols >= 4 * kColStep && packsWell(tileRows, cols))
      tileCols = cols;
    else
      break;
  }
  rowTiles = llvm::divideCeil(M, tileRows);
  colTiles = llvm::divideCeil(N, tileCols);
}

GemmTile GemmTiling::tile(int64_t index) const {
  assert(index >= 0 && index < tiles() && "no such tile");
  // Row-major order: neighbours in time share rows of A.
  int64_t row = index / colTiles * tileRows, col = index % colTiles * tileCols;
  return {row, col, std::min(tileRows, M - row), std::min(tileCols, N - col)};
}

// One depth after another; in each, register panels of kColStep columns (or a divisor of it) one after the other, so
// that column c of a depth from k on begins at k * N + c * depth where c is a multiple of kColStep.
int64_t packedFloats(int64_t K, int64_t N) { return K * N + kPackSlack; }

void packWholeB(const GemmArgs &args, float *packed, Isa isa) {
  for (int64_t k = 0; k < args.K; k += kMaxDepth) {
    Block block{};
    block.cols = args.N, block.depth = std::min(kMaxDepth, args.K - k);
    block.b = args.transB ? args.B + k : args.B + k * args.ldb;
    block.ldb = args.ldb, block.transB = args.transB;
    packB(block, packed + k * args.N, isa);
  }
}

void gemmTile(const GemmArgs &args, const GemmTile &tile, Isa isa) {
  assert((args.beta == 0.0f || args.beta == 1.0f) && "beta is 0 or 1");
  assert((!args.packedB || (args.packedFirst + tile.col) % kColStep == 0) && "packed panels begin there");
  assert(tile.row + tile.rows <= args.M && tile.col + tile.cols <= args.N && "the tile lies within C");
  if (args.beta == 0.0f)
    for (int64_t row = tile.row; row < tile.row + tile.rows; ++row)
      std::memset(args.C + row * args.ldc + tile.col, 0, tile.cols * sizeof(float));
  float *workspace = packingBuffer();
  for (int64_t k = 0; k < args.K; k += kMaxDepth)
    for (int64_t r = tile.row, rowEnd = tile.row + tile.rows; r < rowEnd; r += kMaxRows)
      for (int64_t c = tile.col, colEnd = tile.col + tile.cols; c < colEnd; c += kMaxCols)
        accumulate({.rows = std::min(kMaxRows, rowEnd - r),
                    .cols = std::min(kMaxCols, colEnd - c),
                    .depth = std::min(kMaxDepth, args.K - k),
                    .a = args.transA ? args.A + k * args.lda + r : args.A + r * args.lda + k,
                    .lda = args.lda,
                    .transA = args.transA,
                    .b = args.packedB  ? nullptr
                         : args.transB ? args.B + c * args.ldb + k
                                       : args.B + k * args.ldb + c,
                    .ldb = args.ldb,
                    .transB = args.transB,
                    .c = args.C + r * args.ldc + c,
                    .ldc = args.ldc,
                    .alpha = args.alpha,
                    .workspace = workspace,
                    .packedB = args.packedB ? args.packedB + k * args.packedCols +
                                                  (args.packedFirst + c) * std::min(kMaxDepth, args.K - k)
                                            : nullptr},
                   isa);
}

void gemm(const GemmArgs &args, Workers &workers, llvm::function_ref<void(const GemmTile &)> epilogue, Isa isa) {
  GemmTiling tiling(args.M, args.N, args.K);
  workers.forEach(tiling.tiles(), [&](int64_t index) {
    GemmTile tile = tiling.tile(index);
    gemmTile(args, tile, isa);
    epilogue(tile);
  });
}

void gemm(const GemmArgs &args, Workers &workers, Isa isa) {
  gemm(
      args, workers, [](const GemmTile &) {}, isa);
}

void widenBf16(const uint16_t *source, float *target, int64_t count, Isa isa) {
  switch (isa) {
  case Isa::Baseline: return baseline::widenBf16(source, target, count);
#ifdef FUSOR_CPU_X86
  case Isa::Avx2: return avx2::widenBf16(source, target, count);
  case Isa::Avx512: return avx512::widenBf16(source, target, count);
#else
  default: break;
#endif
  }
  llvm_unreachable("an instruction set that isSupported() refuses");
}

void widenBf16(const uint16_t *source, int64_t sourceLd, float *target, int64_t targetLd, int64_t rows, int64_t cols,
               Isa isa) {
  for (int64_t row = 0; row < rows; ++row) widenBf16(source + row * sourceLd, target + row * targetLd, cols, isa);
}

} // namespace fusor::runtime
