#include "runtime/cpu/gemm/gemm.h"
#include "runtime/cpu/parallel.h"

#include "llvm/Support/FormatVariadic.h"
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

using namespace fusor::runtime;

namespace {

/// One product with its operands, laid out with padding that must not be read into results nor written.
struct Problem {
  GemmArgs args;
  std::vector<float> a, b, c;

  Problem(int64_t M, int64_t N, int64_t K, bool transA, bool transB, float alpha, float beta, int64_t padding) {
    std::mt19937 random(unsigned(M * 7 + N * 5 + K * 3));
    std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
    int64_t lda = (transA ? M : K) + padding, ldb = (transB ? K : N) + padding, ldc = N + padding;
    auto fill = [&](std::vector<float> &values, int64_t rows, int64_t cols, int64_t ld) {
      values.assign(rows * ld, std::numeric_limits<float>::quiet_NaN());
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t col = 0; col < cols; ++col) values[row * ld + col] = uniform(random);
    };
    fill(a, transA ? K : M, transA ? M : K, lda);
    fill(b, transB ? N : K, transB ? K : N, ldb);
    fill(c, M, N, ldc);
    if (beta == 0.0f) c.assign(c.size(), std::numeric_limits<float>::quiet_NaN());
    args = {.M = M,
            .N = N,
            .K = K,
            .lda = lda,
            .transA = transA,
            .ldb = ldb,
            .transB = transB,
            .ldc = ldc,
            .alpha = alpha,
            .beta = beta};
  }

  /// The same problem on these operands and another C.
  GemmArgs on(std::vector<float> &result) const {
    GemmArgs bound = args;
    bound.A = a.data();
    bound.B = b.data();
    bound.C = result.data();
    return bound;
  }

  double expected(int64_t row, int64_t col) const {
    double sum = 0;
    for (int64_t k = 0; k < args.K; ++k)
      sum += double(args.transA ? a[k * args.lda + row] : a[row * args.lda + k]) *
             double(args.transB ? b[col * args.ldb + k] : b[k * args.ldb + col]);
    return args.alpha * sum + (args.beta == 0.0f ? 0.0 : c[row * args.ldc + col]);
  }

  void check(const std::vector<float> &result, const std::string &where) const {
    double tolerance = 1e-6 * (2 + std::sqrt(double(args.K))) * std::max(1.0f, std::abs(args.alpha));
    for (int64_t row = 0; row < args.M; ++row)
      for (int64_t col = 0; col < args.ldc; ++col) {
        float found = result[row * args.ldc + col];
        if (col >= args.N) {
          ASSERT_TRUE(std::isnan(found)) << where << ": padding written at " << row << ", " << col;
          continue;
        }
        ASSERT_NEAR(found, expected(row, col), tolerance) << where << " at " << row << ", " << col;
      }
  }
};

bool sameBits(const std::vector<float> &a, const std::vector<float> &b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(CpuGemm, EqualsDoubleLoopsForRaggedShapesAndAllTransposes) {
  struct {
    int64_t M, N, K;
  } shapes[] = {{1, 1, 1},    {3, 5, 7},      {4, 48, 8},    {31, 33, 17},   {64, 64, 64}, {1, 97, 300},
                {97, 1, 300}, {65, 129, 257}, {260, 50, 31}, {130, 400, 20}, {5, 7, 1000}, {49, 47, 513}};
  for (Isa isa : supportedIsas())
    for (auto shape : shapes)
      for (int variant = 0; variant < 8; ++variant) {
        bool transA = variant & 1, transB = variant & 2;
        bool accumulate = variant & 4;
        Problem problem(shape.M, shape.N, shape.K, transA, transB, accumulate ? -0.5f : 1.0f, accumulate ? 1.0f : 0.0f,
                        variant % 3);
        std::vector<float> result = problem.c;
        Workers one(1);
        gemm(problem.on(result), one, isa);
        problem.check(result, llvm::formatv("{0} {1}x{2}x{3} transA={4} transB={5} accumulate={6}", isaName(isa).str(),
                                            shape.M, shape.N, shape.K, transA, transB, accumulate)
                                  .str());
        if (HasFatalFailure()) return;
      }
}

TEST(CpuGemm, EmptyExtents) {
  Workers one(1);
  std::vector<float> c(12, 7.0f);
  std::vector<float> operand(16, 1.0f);
  GemmArgs args{.M = 3,
                .N = 4,
                .K = 0,
                .A = operand.data(),
                .lda = 1,
                .B = operand.data(),
                .ldb = 4,
                .C = c.data(),
                .ldc = 4,
                .beta = 1.0f};
  gemm(args, one);
  EXPECT_EQ(c, std::vector<float>(12, 7.0f)) << "K = 0 adds nothing";
  args.beta = 0.0f;
  gemm(args, one);
  EXPECT_EQ(c, std::vector<float>(12, 0.0f)) << "K = 0 without accumulation clears";
  c.assign(12, 7.0f);
  args.K = 1;
  args.M = 0;
  gemm(args, one);
  args.M = 3;
  args.N = 0;
  gemm(args, one);
  EXPECT_EQ(c, std::vector<float>(12, 7.0f));
}

TEST(CpuGemm, NonFiniteValuesPropagate) {
  for (Isa isa : supportedIsas()) {
    Problem problem(9, 50, 20, false, false, 1.0f, 0.0f, 0);
    problem.a[3 * 20 + 4] = std::numeric_limits<float>::infinity();
    problem.b[7 * 50 + 49] = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> result = problem.c;
    Workers one(1);
    gemm(problem.on(result), one, isa);
    EXPECT_TRUE(std::isinf(result[3 * 50 + 0]));
    for (int row = 0; row < 9; ++row) EXPECT_TRUE(std::isnan(result[row * 50 + 49])) << "row " << row;
    EXPECT_TRUE(std::isfinite(result[2 * 50 + 48]));
  }
}

TEST(CpuGemm, SameBitsForAnyNumberOfThreads) {
  struct {
    int64_t M, N, K;
    bool transA, transB;
  } shapes[] = {{256, 512, 128, false, false},
                {300, 130, 520, false, true},
                {512, 128, 256, true, false},
                {1024, 96, 64, false, false},
                {37, 1000, 300, true, true}};
  Workers one(1), two(2), three(3);
  for (Isa isa : supportedIsas())
    for (auto shape : shapes) {
      Problem problem(shape.M, shape.N, shape.K, shape.transA, shape.transB, 1.0f, 1.0f, 0);
      ASSERT_GT(GemmTiling(shape.M, shape.N, shape.K).tiles(), 1) << "this shape would test nothing";
      std::vector<float> expected = problem.c;
      gemm(problem.on(expected), one, isa);
      for (Workers *workers : {&two, &three})
        for (int repeat = 0; repeat < 5; ++repeat) {
          std::vector<float> result = problem.c;
          gemm(problem.on(result), *workers, isa);
          ASSERT_TRUE(sameBits(expected, result)) << workers->threads() << " threads, " << isaName(isa).str();
        }
    }
}

// B packed once for all products: the same bits, for a whole product and for one of some of its columns.
TEST(CpuGemm, PackedBGivesTheSameBits) {
  for (bool transB : {false, true})
    for (auto [M, N, K] : {std::array<int64_t, 3>{3, 5, 7}, {64, 500, 300}, {5, 48, 256}, {70, 1000, 513}}) {
      Problem p(M, N, K, false, transB, 1.0f, 0.0f, 3);
      std::vector<float> plain = p.c, packed = p.c;
      Workers workers(2);
      gemm(p.on(plain), workers);
      float *memory = static_cast<float *>(std::aligned_alloc(64, (packedFloats(K, N) * 4 + 63) / 64 * 64));
      packWholeB(p.on(plain), memory);
      GemmArgs args = p.on(packed);
      args.packedB = memory, args.packedCols = N;
      args.B = nullptr, args.ldb = 0;
      const int64_t half = N / 96 * 48; // columns from here on are a product of their own
      GemmArgs right = args;
      right.N = N - half, right.C += half, right.packedFirst = half;
      args.N = half;
      if (half) gemm(args, workers);
      gemm(right, workers);
      std::free(memory);
      EXPECT_EQ(std::memcmp(plain.data(), packed.data(), plain.size() * 4), 0) << M << " " << N << " " << K << transB;
    }
}

TEST(CpuGemm, TilesCoverEachElementOnce) {
  for (int64_t M : {0, 1, 5, 128, 1024, 4096})
    for (int64_t N : {0, 1, 96, 128, 384, 512, 3072}) {
      GemmTiling tiling(M, N, 128);
      std::vector<char> seen(M * N, 0);
      for (int64_t i = 0; i < tiling.tiles(); ++i) {
        GemmTile tile = tiling.tile(i);
        for (int64_t row = tile.row; row < tile.row + tile.rows; ++row)
          for (int64_t col = tile.col; col < tile.col + tile.cols; ++col) ASSERT_EQ(seen[row * N + col]++, 0);
      }
      ASSERT_EQ(std::count(seen.begin(), seen.end(), 1), M * N) << M << "x" << N;
    }
}

TEST(CpuGemm, EpilogueSeesEachFinishedTile) {
  Problem problem(300, 200, 150, false, false, 1.0f, 0.0f, 0);
  std::vector<float> plain = problem.c, doubled = problem.c;
  Workers two(2);
  gemm(problem.on(plain), two);
  gemm(problem.on(doubled), two, [&](const GemmTile &tile) {
    for (int64_t row = tile.row; row < tile.row + tile.rows; ++row)
      for (int64_t col = tile.col; col < tile.col + tile.cols; ++col) doubled[row * 200 + col] *= 2.0f;
  });
  for (float &value : plain) value *= 2.0f;
  EXPECT_TRUE(sameBits(plain, doubled));
}

TEST(CpuGemm, WidenBf16IsExactForAllBits) {
  for (Isa isa : supportedIsas()) {
    std::vector<uint16_t> all(65536);
    for (unsigned i = 0; i < all.size(); ++i) all[i] = uint16_t(i);
    std::vector<float> wide(all.size());
    widenBf16(all.data(), wide.data(), int64_t(all.size()), isa);
    for (unsigned i = 0; i < all.size(); ++i) {
      uint32_t bits;
      std::memcpy(&bits, &wide[i], sizeof bits);
      ASSERT_EQ(bits, i << 16);
    }
    std::vector<float> panel(3 * 8, -1.0f);
    widenBf16(all.data() + 0x3f80, 16, panel.data(), 8, 3, 5, isa);
    EXPECT_EQ(panel[0], 1.0f);
    EXPECT_EQ(panel[8], 1.125f) << "the second row starts one source leading dimension later";
    EXPECT_EQ(panel[5], -1.0f) << "past the panel's columns";
  }
}

} // namespace
