#pragma once
#include "runtime/cpu/isa.h"
#include "llvm/ADT/STLExtras.h"
#include <cstdint>

namespace fusor::runtime {

class Workers;

/// C[M, N] = alpha * op(A)[M, K] * op(B)[K, N] + beta * C, all f32 and row-major.
///
/// A leading dimension is the distance, in elements, between two rows as stored: A is stored [M, K], or [K, M] when
/// transA; B is stored [K, N], or [N, K] when transB. C overlaps neither A nor B. Any of M, N, K may be 0.
struct GemmArgs {
  int64_t M = 0, N = 0, K = 0;
  const float *A = nullptr;
  int64_t lda = 0;
  bool transA = false;
  const float *B = nullptr;
  int64_t ldb = 0;
  bool transB = false;
  float *C = nullptr;
  int64_t ldc = 0;
  float alpha = 1.0f;
  float beta = 0.0f; ///< 0: C is only written, whatever it held (NaN too); 1: C is accumulated into; nothing else
  /// Of packWholeB, for all `packedCols` columns; column 0 of this product is column `packedFirst` there, a multiple of
  /// 48. B, ldb and transB are not read then.
  const float *packedB = nullptr;
  int64_t packedCols = 0, packedFirst = 0;
};

/// A rectangle of C.
struct GemmTile {
  int64_t row = 0, col = 0;
  int64_t rows = 0, cols = 0;
};

/// The split of C into tiles, a function of the shape only. So the order of every addition, and with it every bit of
/// the result, is the same for any number of threads (on one instruction set).
class GemmTiling {
public:
  GemmTiling(int64_t M, int64_t N, int64_t K);
  int64_t tiles() const { return rowTiles * colTiles; }
  GemmTile tile(int64_t index) const;

private:
  int64_t M, N;
  int64_t tileRows, tileCols;
  int64_t rowTiles, colTiles;
};

/// Floats of packWholeB for an op(B) of K by N.
int64_t packedFloats(int64_t K, int64_t N);
/// All of op(B) in the order in which products read it, for B that many products have. Bits of the products stay.
/// `packed` is aligned to 64 bytes.
void packWholeB(const GemmArgs &args, float *packed, Isa isa = bestIsa());

/// Computes one tile on the calling thread. `tile` comes from GemmTiling (larger ones work too, more slowly). Keeps one
/// packing buffer of about 0.8 MiB per thread that ever called it.
void gemmTile(const GemmArgs &args, const GemmTile &tile, Isa isa = bestIsa());

/// The whole product. `epilogue` runs on the thread that made a tile right after it, while C's tile is in the cache.
void gemm(const GemmArgs &args, Workers &workers, Isa isa = bestIsa());
void gemm(const GemmArgs &args, Workers &workers, llvm::function_ref<void(const GemmTile &)> epilogue,
          Isa isa = bestIsa());

/// Widens `count` bf16 values, given as their bits, to f32 (exact). For bf16 operands: widen, then gemm.
void widenBf16(const uint16_t *source, float *target, int64_t count, Isa isa = bestIsa());

/// The same for a panel of `rows` x `cols` with leading dimensions, in elements.
void widenBf16(const uint16_t *source, int64_t sourceLd, float *target, int64_t targetLd, int64_t rows, int64_t cols,
               Isa isa = bestIsa());

} // namespace fusor::runtime
