// transposed_store.cuh: every byte where it belongs, ragged rows and columns, whole tiles and parts; which banks a warp
// meets.
#include "tests/codegen/device/nvrtc.h"
#include "tests/codegen/device/support.h"
#include "gtest/gtest.h"
#include <set>

using namespace fusor::codegen;
using namespace fusor::codegen::tests;

namespace {

// Values are codes of E4M3: what is stored is known without rounding.
constexpr const char *kKernel = R"cuda(
template <int kRows, int kColumns, int kWidth>
__device__ inline void both(const f8e4m3 *in, f8e4m3 *out, i64 rows, i64 columns) {
  extern __shared__ __align__(16) u8 memory[];
  const TransposedTile<f8e4m3, kRows, kColumns, kWidth> tile(memory);
  const i64 across = (columns + kColumns - 1) / kColumns;
  const i64 column0 = blockIdx.x % across * kColumns, first = blockIdx.x / across * kRows;
  const i64 end = first + kRows < rows ? first + kRows : rows;
  const int vectors = kColumns / kWidth;
  for (int i = threadIdx.x; i < kRows * vectors; i += blockDim.x) {
    const i64 row = first + i / vectors, column = column0 + i % vectors * kWidth;
    if (row >= end || column >= columns) continue;
    float values[kWidth];
    for (int e = 0; e < kWidth; ++e) values[e] = load(in + row * columns + column + e);
    tile.put((int)(row - first), (int)(column - column0), values);
  }
  __syncthreads();
  tile.store(out + column0 * rows, rows, first, end, columns - column0);
}
extern "C" __global__ void rows16(const f8e4m3 *in, f8e4m3 *out, i64 rows, i64 columns) { both<16, 32, 1>(in, out, rows, columns); }
extern "C" __global__ void rows32(const f8e4m3 *in, f8e4m3 *out, i64 rows, i64 columns) { both<32, 96, 4>(in, out, rows, columns); }
extern "C" __global__ void rows64(const f8e4m3 *in, f8e4m3 *out, i64 rows, i64 columns) { both<64, 256, 8>(in, out, rows, columns); }
)cuda";

void check(const char *kernel, long long tileRows, long long tileColumns, long long width, long long rows,
           long long columns) {
  static const EmulatedModule module = compileWithDevice({"transposed_store.cuh"}, kKernel);
  std::vector<uint8_t> values(rows * columns);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint8_t>((i * 2654435761u >> 9) % 0x7f);
  GuardedBuffer in = GuardedBuffer::of<uint8_t>(values), out(values.size());
  auto blocks = [](long long size, long long tile) { return static_cast<unsigned>((size + tile - 1) / tile); };
  unsigned bytes = static_cast<unsigned>(tileRows * tileColumns + tileColumns / width * 4);
  unsigned grid = blocks(rows, tileRows) * blocks(columns, tileColumns);
  ASSERT_EQ(
      messageOf(module.run(kernel, {.grid = {grid}, .block = {128}, .sharedBytes = bytes}, in, out, rows, columns)),
      "");
  llvm::ArrayRef<uint8_t> got = out.as<uint8_t>();
  for (long long r = 0; r < rows; ++r)
    for (long long c = 0; c < columns; ++c)
      ASSERT_EQ(got[c * rows + r], values[r * columns + c])
          << kernel << " " << rows << "x" << columns << " at " << r << ", " << c;
}

TEST(TransposedStore, EveryElement) {
  for (long long rows : {1, 3, 16, 17, 64, 130, 132}) {
    for (long long columns : {1, 33, 64}) check("rows16", 16, 32, 1, rows, columns);
    for (long long columns : {4, 96, 100}) check("rows32", 32, 96, 4, rows, columns);
    for (long long columns : {8, 256, 264, 768}) check("rows64", 64, 256, 8, rows, columns);
  }
}

// The word of (column, group), as the header says.
TEST(TransposedStore, NoBankTwice) {
  for (int width : {1, 2, 4, 8})
    for (int words : {4, 8, 16, 32})
      for (int e = 0; e < width; ++e) {
        std::set<int> banks;
        for (int lane = 0; lane < 32; ++lane) {
          int column = lane * width + e;
          banks.insert((column * words + column / width) % 32);
        }
        EXPECT_EQ(banks.size(), 32u) << width << " columns a thread, " << words << " words a column";
      }
}

TEST(TransposedStore, CompilesForGpus) { expectCompilesUnderNvrtc(deviceLibrary({"transposed_store.cuh"}) + kKernel); }

} // namespace
