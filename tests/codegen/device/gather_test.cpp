// gather.cuh and multi_tensor.cuh: exact sums in ascending order whatever the atomics did; chunk lookup.
#include "tests/codegen/device/nvrtc.h"
#include "tests/codegen/device/support.h"
#include "gtest/gtest.h"
#include <array>

using namespace fusor::codegen;
using namespace fusor::codegen::tests;

namespace {

const std::vector<llvm::StringRef> kFiles = {"gather.cuh", "multi_tensor.cuh"};
constexpr const char *kKernels = R"cuda(
extern "C" __global__ void __launch_bounds__(1024) order_8(const i32 *tokens, i64 n, i64 rows, u32 *offsets, u32 *positions, u32 *found) {
  gatherOrder<8>(tokens, n, rows, offsets, positions, found);
}
extern "C" __global__ void __launch_bounds__(1024) order_100(const i32 *tokens, i64 n, i64 rows, u32 *offsets, u32 *positions, u32 *found) {
  gatherOrder<100>(tokens, n, rows, offsets, positions, found);
}
template <int kWidth> struct Scaled {
  float *table; i64 width; float factor;
  __device__ void operator()(i64 row, i64 column, const float (&sums)[kWidth]) const {
    for (int e = 0; e < kWidth; ++e) table[row * width + column + e] = sums[e] * factor;
  }
};
extern "C" __global__ void row_sums(const bf16 *dY, i64 width, const u32 *offsets, const u32 *positions, float *table) {
  gatherRowSums<64, 1>(dY, width, offsets, positions, Scaled<1>{table, width, 2.0f});
}
extern "C" __global__ void part_sums(const bf16 *dY, i64 rows, i64 width, const u32 *offsets, const u32 *positions, float *partials) {
  gatherPartSums<5, 3, 32, 4>(dY, rows, width, offsets, positions, partials);
}
extern "C" __global__ void part_totals(const float *partials, i64 rows, i64 width, const u32 *offsets, float *table) {
  gatherPartTotals<5, 32, 4>(partials, rows, width, offsets, Scaled<4>{table, width, 2.0f});
}
// Every tensor: weight += gradient, and a count of the visits of each element.
extern "C" __global__ void update(const u64 *pointers, const i64 *sizes, const i64 *chunkPrefix, i64 tensors, i64 chunkElements) {
  TensorTable table = {pointers, sizes, chunkPrefix, tensors};
  TensorChunk chunk = findChunk(table, blockIdx.x, chunkElements);
  float *weight = tensorPointer<float>(table, 0, chunk.tensor);
  const bf16 *gradient = tensorPointer<const bf16>(table, 1, chunk.tensor);
  for (i64 i = chunk.begin + threadIdx.x; i < chunk.end; i += blockDim.x) weight[i] += load(gradient + i);
}
)cuda";

const EmulatedModule &module() {
  static const EmulatedModule compiled = compileWithDevice(kFiles, kKernels);
  return compiled;
}

void checkEmbedding(long long n, long long rows, long long width, llvm::ArrayRef<int> tokens) {
  std::vector<float> random = randomValues(n * width, 9);
  std::vector<uint16_t> dY(n * width);
  for (size_t i = 0; i < dY.size(); ++i)
    dY[i] = static_cast<uint16_t>(kBf16.encodeMagnitude(std::fabs(random[i])) | (random[i] < 0 ? 0x8000 : 0));
  GuardedBuffer tokenBytes = GuardedBuffer::of<int>(tokens), dYBytes = GuardedBuffer::of<uint16_t>(dY);
  GuardedBuffer offsets((rows + 1) * 4), positions(n * 4), found(n * 4), table(rows * width * 4);
  for (auto [order, rowsOfABlock] : {std::pair{"order_8", 8}, {"order_100", 100}}) {
    const unsigned blocks = static_cast<unsigned>((rows + rowsOfABlock - 1) / rowsOfABlock);
    ASSERT_EQ(messageOf(module().run(order, {.grid = {blocks}, .block = {1024}}, tokenBytes, n, rows, offsets,
                                     positions, found)),
              "");
    std::vector<std::vector<long long>> positionsOf(rows); // ascending
    for (long long i = 0; i < n; ++i) {
      long long row = tokens[i] < 0 ? tokens[i] + rows : tokens[i];
      if (row >= 0 && row < rows) positionsOf[row].push_back(i);
    }
    auto check = [&, order = order](long long row, long long column, float expected, const char *what) {
      ASSERT_EQ(table.as<float>()[row * width + column], 2 * expected)
          << order << ", " << what << " of row " << row << ", column " << column;
    };
    auto element = [&](long long i, long long c) { return static_cast<float>(kBf16.decode(dY[i * width + c])); };
    const unsigned grid = static_cast<unsigned>(rows);
    ASSERT_EQ(
        messageOf(module().run("row_sums", {.grid = {grid}, .block = {64}}, dYBytes, width, offsets, positions, table)),
        "");
    for (long long row = 0; row < rows; ++row)
      for (long long c = 0; c < width; ++c) { // the same sums, so the same bits
        float sum = 0;
        for (long long i : positionsOf[row]) sum += element(i, c);
        check(row, c, sum, "sum");
      }
    if (width % 4 != 0) continue;
    GuardedBuffer partials(5 * rows * width * 4);
    ASSERT_EQ(messageOf(module().run("part_sums", {.grid = {grid * 5}, .block = {96}}, dYBytes, rows, width, offsets,
                                     positions, partials)),
              "");
    ASSERT_EQ(
        messageOf(module().run("part_totals", {.grid = {grid}, .block = {32}}, partials, rows, width, offsets, table)),
        "");
    for (long long row = 0; row < rows; ++row)
      for (long long c = 0; c < width; ++c) { // every third position of a part, the thirds, then the parts in order
        const std::vector<long long> &own = positionsOf[row];
        size_t share = std::max<size_t>((own.size() + 4) / 5, 16);
        float sum = 0;
        for (size_t begin = 0; begin < own.size(); begin += share) {
          float thirds[3] = {};
          for (size_t p = begin; p < std::min(begin + share, own.size()); ++p)
            thirds[(p - begin) % 3] += element(own[p], c);
          sum += (thirds[0] + thirds[1]) + thirds[2];
        }
        check(row, c, sum, "parts");
      }
  }
}

TEST(Gather, EmbeddingGradientIsExact) {
  for (auto [n, rows, width] :
       {std::array<long long, 3>{1, 1, 1}, {31, 5, 33}, {130, 96, 7}, {500, 2500, 3}, {300, 1, 8}, {5000, 150, 36}}) {
    std::mt19937 engine(4);
    std::vector<int> tokens(n);
    for (int &token : tokens) token = static_cast<int>(engine() % rows * (engine() % 4 != 0)); // row 0 is frequent
    checkEmbedding(n, rows, width, tokens);
  }
}

TEST(Gather, CountsFromTheEndAndSkipsTokensOutsideTheTable) {
  std::vector<int> tokens = {3, -1, 7, 3, 8, 1000000, 0, -2147483647};
  checkEmbedding(static_cast<long long>(tokens.size()), 8, 5, tokens);
}

TEST(MultiTensor, EveryElementOnce) {
  const std::vector<long long> sizes = {1, 0, 31, 128, 129, 0, 700};
  const long long chunk = 128, tensors = static_cast<long long>(sizes.size());
  std::vector<GuardedBuffer> weights, gradients;
  std::vector<uint64_t> pointers(2 * tensors);
  std::vector<long long> prefix = {0};
  for (long long t = 0; t < tensors; ++t) {
    std::vector<float> weight(sizes[t], static_cast<float>(t));
    std::vector<uint16_t> ones(sizes[t], 0x3f80); // 1.0 as bf16
    weights.push_back(GuardedBuffer::of<float>(weight));
    gradients.push_back(GuardedBuffer::of<uint16_t>(ones));
    pointers[t] = reinterpret_cast<uint64_t>(weights.back().data());
    pointers[tensors + t] = reinterpret_cast<uint64_t>(gradients.back().data());
    prefix.push_back(prefix.back() + (sizes[t] + chunk - 1) / chunk);
  }
  GuardedBuffer pointerBytes = GuardedBuffer::of<uint64_t>(pointers), sizeBytes = GuardedBuffer::of<long long>(sizes),
                prefixBytes = GuardedBuffer::of<long long>(prefix);
  ASSERT_EQ(messageOf(module().run("update", {.grid = {static_cast<unsigned>(prefix.back())}, .block = {32}},
                                   pointerBytes, sizeBytes, prefixBytes, tensors, chunk)),
            "");
  for (long long t = 0; t < tensors; ++t) {
    EXPECT_EQ(messageOf(weights[t].check("weight")), "");
    for (float value : weights[t].as<float>()) ASSERT_EQ(value, t + 1) << "tensor " << t;
  }
}

TEST(Gather, CompilesForGpus) { expectCompilesUnderNvrtc(deviceLibrary(kFiles) + kKernels); }

} // namespace
