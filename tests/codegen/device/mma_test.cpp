// Tensor-core tiles against the definition in double precision, and what the emulator sees of copies in the background.
#include "tests/codegen/device/nvrtc.h"
#include "tests/codegen/device/support.h"
#include "gtest/gtest.h"

using namespace fusor::codegen;
using namespace fusor::codegen::tests;

namespace {

// One warp: left[16][D], right[32][D], more[16][32] of T -> transposed[16][32] = left · rightᵀ, stored[16][D] of T =
// (more as sums, rounded, as a left operand) · right. kPlain: the left rows come from registers.
std::string productsOf(int columns, const std::string &type) {
  const std::string D = std::to_string(columns);
  return "extern \"C\" __global__ void products_" + type + "_" + D + "(const " + type + " *left, const " + type +
         " *right, const float *more, float *transposed, " + type + R"( *stored) {
  typedef )" +
         type + R"( T;
  constexpr int D = )" +
         D + R"(;
  __shared__ MmaTile<T, 16, D, 32> leftTile;
  __shared__ MmaTile<T, 32, D, 32> rightTile;
  leftTile.fill(left, D, 16);
  rightTile.fill(right, D, 31); // the last row becomes zeros
  commitCopies();
  waitForCopies<0>();
  __syncwarp();
  const int group = threadIdx.x / 4, pair = threadIdx.x % 4;
  float sums[4][4], again[4][4];
  clear(sums);
  clear(again);
  u32 rows[decltype(leftTile)::kWidth / 16][4];
  leftTile.loadLeft(rows, 0);
  rightTile.template addTransposed<4>(sums, rows, 0);
  rightTile.template addTransposed<4>(again, leftTile, 0, 0);
  float weights[4][4];
  for (int n = 0; n < 4; ++n)
    for (int i = 0; i < 4; ++i) {
      const int at = (group + i / 2 * 8) * 32 + n * 8 + pair * 2 + i % 2;
      transposed[at] = sums[n][i] == again[n][i] ? sums[n][i] : bitsToFloat(0x7fc00000u);
      weights[n][i] = more[at];
    }
  u32 packed[2][4];
  packLeft<T>(packed, weights);
  float products[decltype(leftTile)::kWidth / 8][4];
  clear(products);
  rightTile.template add<2>(products, packed, 0);
  leftTile.store(stored, D, 15, 0, products, 2.0f, 3.0f); // rows 0 .. 7 times 2, rows 8 .. 14 times 3, row 15 not at all
}
)";
}

double decoded(const std::string &type, uint16_t bits) { return (type == "bf16" ? kBf16 : kF16).decode(bits); }
uint16_t encoded(const std::string &type, double value) {
  const Format &format = type == "bf16" ? kBf16 : kF16;
  return static_cast<uint16_t>(format.encodeMagnitude(std::fabs(value)) | (std::signbit(value) ? 0x8000u : 0));
}

TEST(Mma, TilesMultiply) {
  for (const char *type : {"bf16", "f16"})
    for (int D : {8, 16, 40, 128}) {
      SCOPED_TRACE(std::string(type) + " " + std::to_string(D));
      EmulatedModule module = compileWithDevice({"mma_sm80.cuh"}, productsOf(D, type));
      GuardedBuffer left(16 * D * 2), right(32 * D * 2), more(16 * 32 * 4), transposed(16 * 32 * 4), stored(15 * D * 2);
      unsigned seed = 0;
      for (GuardedBuffer *buffer : {&left, &right}) {
        auto values = randomValues(buffer == &left ? 16 * D : 32 * D, ++seed);
        for (size_t i = 0; i < values.size(); ++i) buffer->as<uint16_t>()[i] = encoded(type, values[i]);
      }
      auto values = randomValues(16 * 32, ++seed);
      for (size_t i = 0; i < values.size(); ++i) more.as<float>()[i] = values[i];
      ASSERT_EQ(messageOf(module.run("products_" + std::string(type) + "_" + std::to_string(D), {.block = {32}}, left,
                                     right, more, transposed, stored)),
                "");
      auto at = [&](const GuardedBuffer &buffer, int i) { return decoded(type, buffer.as<uint16_t>()[i]); };
      for (int r = 0; r < 16; ++r) {
        for (int c = 0; c < 32; ++c) {
          double sum = 0;
          for (int d = 0; d < D && c < 31; ++d) sum += at(left, r * D + d) * at(right, c * D + d);
          ASSERT_NEAR(transposed.as<float>()[r * 32 + c], sum, 1e-4) << r << ", " << c;
        }
        for (int d = 0; d < D && r < 15; ++d) {
          double sum = 0;
          for (int c = 0; c < 31; ++c) sum += decoded(type, encoded(type, values[r * 32 + c])) * at(right, c * D + d);
          ASSERT_NEAR(at(stored, r * D + d), sum * (r < 8 ? 2 : 3), 0.3) << r << ", " << d;
        }
      }
    }
}

// Four warps turn a tile round through shared memory, four times. WAIT and BARRIER are what it takes.
std::string turnAround(bool wait, bool barrier, bool early) {
  return std::string(R"(
extern "C" __global__ void turn(const u32 *in, u32 *out) {
  __shared__ uint4 stages[2][128];
  in += blockIdx.x * 2048, out += blockIdx.x * 2048;
  auto fetch = [&](int i) {
    copyAsync16(&stages[i % 2][threadIdx.x], in + i * 512 + threadIdx.x * 4, true);
    commitCopies();
  };
  fetch(0);
  for (int i = 0; i < 4; ++i) {
)") + (early ? "    if (i + 1 < 4) fetch(i + 1);\n" : "") +
         (wait ? early ? "    waitForCopies<1>();\n    if (i == 3) waitForCopies<0>();\n" : "    waitForCopies<0>();\n"
               : "") +
         (barrier ? "    __syncthreads();\n" : "") + (early ? "" : "    if (i + 1 < 4) fetch(i + 1);\n") + R"(
    for (int j = 0; j < 4; ++j) out[i * 512 + threadIdx.x * 4 + j] = ((const u32 *)stages[i % 2])[511 - threadIdx.x * 4 - j];
  }
}
)";
}
// Whether it works; `message` is what the emulator says beside that.
bool turnsAround(const std::string &kernel, const std::string &message = "") {
  EmulatedModule module = compileWithDevice({"mma_sm80.cuh"}, kernel);
  GuardedBuffer in(2 * 2048 * 4), out(2 * 2048 * 4);
  for (unsigned i = 0; i < 4096; ++i) in.as<uint32_t>()[i] = i, out.as<uint32_t>()[i] = ~0u;
  const std::string said = messageOf(module.run("turn", {.grid = {2}, .block = {128}}, in, out));
  EXPECT_NE(said.find(message), std::string::npos) << said;
  EXPECT_EQ(said.empty(), message.empty()) << said;
  for (unsigned i = 0; i < 4096; ++i)
    if (out.as<uint32_t>()[i] != i / 512 * 512 + 511 - i % 512) return false;
  return true;
}

TEST(Mma, EmulatorSeesMissingWaitsAndBarriers) {
  EXPECT_TRUE(turnsAround(turnAround(true, true, false)));
  EXPECT_FALSE(turnsAround(turnAround(false, true, false), "cp.async that were not waited for"));
  EXPECT_FALSE(turnsAround(turnAround(true, false, false))); // waits for its own copies only
  EXPECT_FALSE(turnsAround(turnAround(true, true, true)));   // refills a stage that others still read
}

TEST(Mma, EmulatorRefusesUnalignedRows) {
  EmulatedModule module = compileWithDevice({"mma_sm80.cuh"}, R"(
extern "C" __global__ void unaligned(u32 *out) {
  __shared__ uint4 tile[16];
  u32 m[4];
  ldmatrix4(m, (const u32 *)tile + threadIdx.x % 8 * 2);
  out[threadIdx.x] = m[0];
}
)");
  GuardedBuffer out(32 * 4);
  EXPECT_NE(messageOf(module.run("unaligned", {.block = {32}}, out)).find("aligned to 16 bytes"), std::string::npos);
}

TEST(Mma, CompilesForGpus) {
  expectCompilesUnderNvrtc(deviceLibrary({"mma_sm80.cuh"}) + productsOf(40, "bf16") + productsOf(64, "f16"),
                           {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120"});
}

} // namespace
