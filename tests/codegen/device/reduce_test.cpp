// reduce.cuh, partials.cuh and exp_sum.cuh: block sizes, back-to-back calls, NaN rules, and that every thread sees the
// same bits.
#include "tests/codegen/device/nvrtc.h"
#include "tests/codegen/device/support.h"
#include "gtest/gtest.h"
#include <algorithm>

using namespace fusor::codegen;
using namespace fusor::codegen::tests;

namespace {

constexpr const char *kKernels = R"cuda(
// Sum, max and sum again, back to back; every thread writes what it got.
extern "C" __global__ void reductions(const float *x, float *sums, float *maxima, float *again, i64 n) {
  float sum = 0, largest = Max::identity<float>();
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
    sum += x[i];
    largest = Max::combine(largest, x[i]);
  }
  float total = blockSum(sum);
  sums[threadIdx.x] = total;
  maxima[threadIdx.x] = blockMax(largest);
  again[threadIdx.x] = blockSum(sum - total);
}
extern "C" __global__ void pair(const float *x, float *sums) {
  float values[2] = {x[threadIdx.x], x[threadIdx.x] * 2};
  blockReduceAll<Sum>(values);
  sums[threadIdx.x] = values[0] + values[1];
}
extern "C" __global__ void extremes(const float *x, float *out) {
  float max = blockReduce<Max>(x[threadIdx.x]), min = blockReduce<Min>(x[threadIdx.x]);
  float number = blockReduce<MaxNumber>(x[threadIdx.x]);
  if (threadIdx.x == 0) out[0] = max, out[1] = min, out[2] = number;
}
extern "C" __global__ void others(const double *x, const i64 *k, double *sum, i64 *largest, i64 *product) {
  *sum = blockSum(x[threadIdx.x]);
  *largest = blockMax(k[threadIdx.x]);
  *product = warpReduce<Product>(threadIdx.x % 32 < 3 ? k[threadIdx.x % 32] : (i64)1);
}
// Rows of n: the largest, and the sum of exp(x - largest), four at once.
extern "C" __global__ void exp_sums(const float *x, float *out, i64 n) {
  ExpSum mine;
  for (i64 i = threadIdx.x * 4; i < n; i += blockDim.x * 4) {
    float x4[4];
    for (int e = 0; e < 4; ++e) x4[e] = x[blockIdx.x * n + i + e];
    mine.add(x4);
  }
  const float largest = blockReduce<Max>(mine.largest), sum = blockReduce<Sum>(mine.sumAt(largest));
  if (threadIdx.x == 0) out[2 * blockIdx.x] = largest, out[2 * blockIdx.x + 1] = sum;
}
// x: [rows][columns]. Block b has rows b, b + gridDim.x, ...; each warp has every third of these.
template <int kTurns, int kWidth> __device__ void columnSums(const float *x, float *partials, i64 rows, i64 columns) {
  float sums[kTurns][kWidth] = {};
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (i64 row = blockIdx.x + warp * (i64)gridDim.x; row < rows; row += 3 * (i64)gridDim.x)
    for (int j = 0; j < kTurns; ++j)
      for (int e = 0; e < kWidth; ++e) {
        const i64 c = (j * 32 + lane) * kWidth + e;
        if (c < columns) sums[j][e] += x[row * columns + c];
      }
  storeColumnSums<Sum, 3, kWidth>(partials + blockIdx.x * columns, columns, sums);
  storeColumnSums<Sum, 3, kWidth>(partials + blockIdx.x * columns, columns, sums); // back to back
}
extern "C" __global__ void column_sums_1(const float *x, float *partials, i64 rows, i64 columns) {
  columnSums<4, 1>(x, partials, rows, columns);
}
extern "C" __global__ void column_sums_4(const float *x, float *partials, i64 rows, i64 columns) {
  columnSums<2, 4>(x, partials, rows, columns);
}
// Two sums at once, the second of -x.
extern "C" __global__ void column_totals(const float *a, const float *b, float *out, i64 count, i64 columns) {
  const i64 c = (i64)blockIdx.x * 32 + threadIdx.x % 32;
  const float *const parts[2] = {a, b};
  float totals[2];
  columnTotals<Sum, 32>(parts, count, columns, c, c < columns, totals);
  if (c < columns && threadIdx.x < 32) out[c] = totals[0], out[columns + c] = totals[1];
}
)cuda";

const EmulatedModule &module() {
  static const EmulatedModule compiled = compileWithDevice({"partials.cuh", "exp_sum.cuh"}, kKernels);
  return compiled;
}

TEST(Reduce, AllBlockSizesGiveEveryThreadTheResult) {
  for (unsigned block : {32u, 64u, 96u, 256u, 1024u})
    for (long long n : {1, 31, 33, 127, 130, 4097}) {
      std::vector<float> x = randomValues(n, 7);
      double sum = 0, largest = -INFINITY;
      for (float value : x) sum += value, largest = std::fmax(largest, value);
      GuardedBuffer in = GuardedBuffer::of<float>(x), sums(block * 4), maxima(block * 4), again(block * 4);
      ASSERT_EQ(messageOf(module().run("reductions", {.block = {block}}, in, sums, maxima, again, n)), "");
      for (unsigned t = 0; t < block; ++t) {
        ASSERT_NEAR(sums.as<float>()[t], sum, 1e-5 * n) << block << " threads, " << n << " values";
        ASSERT_EQ(sums.as<float>()[t], sums.as<float>()[0]);
        ASSERT_EQ(maxima.as<float>()[t], static_cast<float>(largest));
        ASSERT_NEAR(again.as<float>()[t], sum - block * sum, 1e-4 * block * (1 + std::fabs(sum)));
      }
    }
}

TEST(Reduce, SeveralValuesAtOnce) {
  std::vector<float> x(160);
  for (int i = 0; i < 160; ++i) x[i] = static_cast<float>(i);
  GuardedBuffer in = GuardedBuffer::of<float>(x), out(640);
  ASSERT_EQ(messageOf(module().run("pair", {.block = {160}}, in, out)), "");
  for (float value : out.as<float>()) EXPECT_EQ(value, 3 * 160 * 159 / 2);
}

TEST(Reduce, NaNWinsExceptInMaxNumber) {
  for (int position : {0, 5, 63}) {
    std::vector<float> x = randomValues(64, 3);
    x[position] = NAN;
    x[17] = 100;
    GuardedBuffer in = GuardedBuffer::of<float>(x), out(12);
    ASSERT_EQ(messageOf(module().run("extremes", {.block = {64}}, in, out)), "");
    EXPECT_TRUE(std::isnan(out.as<float>()[0]));
    EXPECT_TRUE(std::isnan(out.as<float>()[1]));
    EXPECT_EQ(out.as<float>()[2], 100);
  }
}

TEST(Reduce, OtherTypes) {
  std::vector<double> x(64, 0.1);
  std::vector<int64_t> k(64, -5);
  k[0] = 3, k[1] = 1000000007, k[2] = -2, k[40] = int64_t(1) << 50;
  GuardedBuffer doubles = GuardedBuffer::of<double>(x), integers = GuardedBuffer::of<int64_t>(k), sum(8), largest(8),
                product(8);
  ASSERT_EQ(messageOf(module().run("others", {.block = {64}}, doubles, integers, sum, largest, product)), "");
  EXPECT_NEAR(sum.as<double>()[0], 6.4, 1e-14);
  EXPECT_EQ(largest.as<int64_t>()[0], int64_t(1) << 50);
  EXPECT_EQ(product.as<int64_t>()[0], int64_t(-6) * 1000000007);
}

TEST(ExpSum, MaximumAndSumOfExponentials) {
  const float inf = INFINITY;
  for (long long n : {4, 100, 1000}) {
    std::vector<std::vector<float>> rows(7, randomValues(n, 11));
    for (long long i = 0; i < n; ++i) {
      rows[1][i] = static_cast<float>(i);               // ever larger: rescaled at each step
      rows[2][i] = i % 3 == 0 ? -inf : 30 * rows[2][i]; // masked, far apart
      rows[3][i] = i + 1 == n ? 1.0f : -inf;            // nothing but -inf until the last
      rows[4][i] = -inf;
    }
    rows[5][n / 2] = NAN, rows[6][n / 2] = inf;
    std::vector<float> x;
    for (auto &row : rows) x.insert(x.end(), row.begin(), row.end());
    GuardedBuffer in = GuardedBuffer::of<float>(x), out(rows.size() * 8);
    fusor::emulator::LaunchShape shape{.grid = {static_cast<unsigned>(rows.size())}, .block = {64}};
    ASSERT_EQ(messageOf(module().run("exp_sums", shape, in, out, n)), "");
    for (size_t r = 0; r < rows.size(); ++r) {
      float largest = out.as<float>()[2 * r], sum = out.as<float>()[2 * r + 1];
      if (r >= 4) { // as the reductions one after the other have it
        EXPECT_TRUE(std::isnan(sum)) << r;
        continue;
      }
      double expected = 0, most = *std::max_element(rows[r].begin(), rows[r].end());
      for (float v : rows[r]) expected += std::exp(v - most);
      EXPECT_EQ(largest, static_cast<float>(most)) << r;
      EXPECT_NEAR(sum, expected, 2e-6 * expected) << "row " << r << " of " << n;
    }
  }
}

TEST(Partials, ColumnSumsInTwoStages) {
  for (const char *first : {"column_sums_1", "column_sums_4"})
    for (long long rows : {0, 1, 7, 100})
      for (long long columns : {1, 31, 100, 128}) {
        const long long blocks = 21;
        std::vector<float> x = randomValues(rows * columns, 3), negative;
        GuardedBuffer in = GuardedBuffer::of<float>(x), parts(blocks * columns * 4), out(2 * columns * 4);
        ASSERT_EQ(messageOf(module().run(first, {.grid = {blocks}, .block = {96}}, in, parts, rows, columns)), "");
        for (long long i = 0; i < blocks * columns; ++i) negative.push_back(-parts.as<float>()[i]);
        GuardedBuffer other = GuardedBuffer::of<float>(negative);
        fusor::emulator::LaunchShape finish{.grid = {static_cast<unsigned>((columns + 31) / 32)}, .block = {512}};
        ASSERT_EQ(messageOf(module().run("column_totals", finish, parts, other, out, blocks, columns)), "");
        for (long long c = 0; c < columns; ++c) {
          double sum = 0;
          for (long long row = 0; row < rows; ++row) sum += x[row * columns + c];
          ASSERT_NEAR(out.as<float>()[c], sum, 1e-5 * rows) << first << " " << rows << " x " << columns;
          ASSERT_EQ(out.as<float>()[columns + c], -out.as<float>()[c]);
        }
      }
}

TEST(Reduce, CompilesForGpus) { expectCompilesUnderNvrtc(deviceLibrary({"partials.cuh", "exp_sum.cuh"}) + kKernels); }

} // namespace
