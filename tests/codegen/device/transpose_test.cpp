// transpose.cuh: every element where it belongs, in all word sizes, ragged and aligned, with room between rows.
#include "tests/codegen/device/support.h"
#include "gtest/gtest.h"

using namespace fusor::codegen;
using namespace fusor::codegen::tests;

namespace {

constexpr const char *kKernels = R"cuda(
extern "C" __global__ void bytes(const u8 *in, u8 *out, i64 rows, i64 columns, i64 inRow, i64 inBatch) {
  transposeTiles(in, out, rows, columns, inRow, inBatch);
}
extern "C" __global__ void halves(const u16 *in, u16 *out, i64 rows, i64 columns, i64 inRow, i64 inBatch) {
  transposeTiles(in, out, rows, columns, inRow, inBatch);
}
extern "C" __global__ void words(const u32 *in, u32 *out, i64 rows, i64 columns, i64 inRow, i64 inBatch) {
  transposeTiles(in, out, rows, columns, inRow, inBatch);
}
)cuda";

template <typename Element> void check(const char *kernel, long long rows, long long columns, long long inRow) {
  static const EmulatedModule module = compileWithDevice({"transpose.cuh"}, kKernels);
  constexpr long long kBatch = 2, kSide = 128 / sizeof(Element);
  long long inBatch = rows * inRow;
  std::vector<Element> values(kBatch * inBatch);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<Element>(i * 2654435761u >> 7);
  GuardedBuffer in = GuardedBuffer::of<Element>(values), out(kBatch * rows * columns * sizeof(Element));
  auto blocks = [&](long long size) { return static_cast<unsigned>((size + kSide - 1) / kSide); };
  unsigned grid = static_cast<unsigned>(kBatch) * blocks(rows) * blocks(columns);
  ASSERT_EQ(messageOf(module.run(kernel, {.grid = {grid}, .block = {256}}, in, out, rows, columns, inRow, inBatch)),
            "");
  llvm::ArrayRef<Element> got = out.as<Element>();
  for (long long b = 0; b < kBatch; ++b)
    for (long long r = 0; r < rows; ++r)
      for (long long c = 0; c < columns; ++c)
        ASSERT_EQ(got[(b * columns + c) * rows + r], values[b * inBatch + r * inRow + c])
            << kernel << " " << rows << "x" << columns << " at " << b << ", " << r << ", " << c;
}

TEST(Transpose, EveryElement) {
  for (auto [rows, columns, inRow] : {std::tuple{1, 5, 5},
                                      {128, 128, 128},
                                      {64, 256, 256},
                                      {131, 37, 37},
                                      {33, 130, 133},
                                      {260, 12, 16},
                                      {3, 129, 132}}) {
    check<uint8_t>("bytes", rows, columns, inRow);
    check<uint16_t>("halves", rows, columns, inRow);
    check<uint32_t>("words", rows, columns, inRow);
  }
}

} // namespace
