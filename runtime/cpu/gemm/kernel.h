#pragma once
// What each instruction set's translation unit provides (kernel_*.cpp). They are compiled with flags that the processor
// at hand may not have, so this header is plain declarations: an inline function here would be compiled with those
// flags, and the linker might keep that copy for everybody. tests/runtime/cpu_isolation_test.cpp looks at their
// symbols.
#include <cstdint>

namespace fusor::runtime::gemm_kernel {

/// Largest extents of one packed block, in elements. Packed panels: kMaxDepth * (kMaxCols + kMaxRows) floats, which
/// stay in an L2 of 1 MiB; one register panel of B (48 columns with AVX-512) by kMaxDepth stays in an L1 of 48 KiB.
constexpr int64_t kMaxRows = 256;
constexpr int64_t kMaxCols = 384;
constexpr int64_t kMaxDepth = 256;
/// The packers write whole register panels and the kernel prefetches past the end.
constexpr int64_t kPackSlack = 4096;
constexpr int64_t kWorkspaceFloats = kMaxDepth * (kMaxRows + kMaxCols) + 2 * kPackSlack;

/// C[rows, cols] += alpha * op(A)[rows, depth] * op(B)[depth, cols]; rows, cols and depth within the maxima.
struct Block {
  int64_t rows, cols, depth;
  const float *a;
  int64_t lda;
  bool transA;
  const float *b;
  int64_t ldb;
  bool transB;
  float *c;
  int64_t ldc;
  float alpha;
  float *workspace;               ///< kWorkspaceFloats, 64-byte aligned
  const float *packedB = nullptr; ///< of packB, from these columns on; null: b is packed now
};

#define FUSOR_GEMM_KERNEL(ISA)                                                                                         \
  namespace ISA {                                                                                                      \
  void accumulate(const Block &block);                                                                                 \
  void packB(const Block &block, float *packed);                                                                       \
  void widenBf16(const uint16_t *source, float *target, int64_t count);                                                \
  }
FUSOR_GEMM_KERNEL(baseline)
FUSOR_GEMM_KERNEL(avx2)
FUSOR_GEMM_KERNEL(avx512)
#undef FUSOR_GEMM_KERNEL

} // namespace fusor::runtime::gemm_kernel
