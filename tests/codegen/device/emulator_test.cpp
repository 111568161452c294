// The emulator itself: what it computes, and that it reports the bugs it is there for. The planted-bug tests fail if
// the emulator stops seeing races, overflows or divergence.
#include "runtime/emulator/sanitizer.h"
#include "tests/support/test_emulator.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"
#include <numeric>

using namespace fusor::emulator;

namespace {

constexpr const char *kKernels = R"cuda(
extern "C" __global__ void scale(const float *x, float *y, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * factor;
}

// y[i] = x[blockDim - 1 - i] through shared memory; correct.
extern "C" __global__ void __launch_bounds__(128) reverse(const int *x, int *y) {
  __shared__ int tile[128];
  tile[threadIdx.x] = x[blockIdx.x * 128 + threadIdx.x];
  __syncthreads();
  y[blockIdx.x * 128 + threadIdx.x] = tile[127 - threadIdx.x];
}
// The same with the barrier forgotten.
extern "C" __global__ void reverseRacing(const int *x, int *y) {
  __shared__ int tile[128];
  tile[threadIdx.x] = x[blockIdx.x * 128 + threadIdx.x];
  y[blockIdx.x * 128 + threadIdx.x] = tile[127 - threadIdx.x];
}
// Every thread reads its left neighbour's value; the barrier is forgotten, which only one order of warps shows.
extern "C" __global__ void leftRacing(const int *x, int *y) {
  __shared__ int tile[128];
  tile[threadIdx.x] = x[blockIdx.x * 128 + threadIdx.x];
  y[blockIdx.x * 128 + threadIdx.x] = tile[threadIdx.x == 0 ? 0 : threadIdx.x - 1];
}
// Exchange through shared memory inside a warp with __syncwarp forgotten.
extern "C" __global__ void warpRacing(const int *x, int *y) {
  __shared__ int tile[32];
  tile[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = tile[31 - threadIdx.x];
}

extern "C" __global__ void shuffles(int *xorOut, int *upOut, int *downOut, int *indexOut, unsigned *ballotOut,
                                    double *wideOut) {
  int t = threadIdx.x;
  xorOut[t] = __shfl_xor_sync(0xffffffffu, t, 5);
  upOut[t] = __shfl_up_sync(0xffffffffu, t, 3, 8);
  downOut[t] = __shfl_down_sync(0xffffffffu, t, 2);
  indexOut[t] = __shfl_sync(0xffffffffu, t, 7);
  ballotOut[t] = __ballot_sync(0xffffffffu, t % 3 == 0);
  wideOut[t] = __shfl_xor_sync(0xffffffffu, t + 0.5, 1);
}
// The two half warps exchange separately, at different lines.
extern "C" __global__ void halves(int *out) {
  int t = threadIdx.x;
  if (t < 16)
    out[t] = __shfl_xor_sync(0x0000ffffu, t, 1);
  else
    out[t] = __shfl_xor_sync(0xffff0000u, t, 2);
}

extern "C" __global__ void dynamicTile(int *y, int n) {
  extern __shared__ int tile[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) tile[i] = i * 3;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = tile[n - 1 - i];
}
extern "C" __global__ void count(unsigned *counter) { atomicAdd(counter, 1); }

extern "C" __global__ void divergentLines() {
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
}
extern "C" __global__ void earlyReturn() {
  if (threadIdx.x >= 32) return;
  __syncthreads();
}
extern "C" __global__ void shuffleWithoutLane() {
  if (threadIdx.x < 16) __shfl_xor_sync(0xffffffffu, 1, 1);
  __syncthreads();
}
extern "C" __global__ void shuffleOutsideMask(int *y) {
  if (threadIdx.x < 16) y[threadIdx.x] = __shfl_sync(0x0000ffffu, 1, 20);
}
extern "C" __global__ void fullMaskShuffle(int *y) { y[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1, 1); }

extern "C" __global__ void writePast(float *y, int n, int extra) { y[n + extra] = 1; }
extern "C" __global__ void sharedPast(float *y, int i) {
  __shared__ float tile[32];
  float *element = tile + i; // a pointer: the index itself would be stopped by UBSan first
  *element = y[0];
  y[0] = tile[0];
}
struct Pair { long long first; float second; };
extern "C" __global__ void structArgument(Pair pair, float *y) { *y = pair.first + pair.second; }
)cuda";

const EmulatedModule &module() {
  static const EmulatedModule compiled = llvm::cantFail(fusor::tests::testEmulator().compile(kKernels));
  return compiled;
}

std::string messageOf(llvm::Error error) { return llvm::toString(std::move(error)); }

GuardedBuffer counting(unsigned n) {
  std::vector<int> values(n);
  std::iota(values.begin(), values.end(), 0);
  return GuardedBuffer::of<int>(values);
}

// Largest |y[i] - expected(i)| of a 2-block run of one of the `reverse` family.
template <class Expected> int wrongElements(const char *kernel, unsigned block, unsigned blocks, Expected expected) {
  GuardedBuffer x = counting(block * blocks), y(block * blocks * sizeof(int));
  EXPECT_EQ(messageOf(module().run(kernel, {.grid = {blocks}, .block = {block}}, x, y)), "");
  int wrong = 0;
  for (unsigned i = 0; i < block * blocks; ++i) wrong += y.as<int>()[i] != static_cast<int>(expected(i));
  return wrong;
}
unsigned reversed(unsigned i) { return i / 128 * 128 + 127 - i % 128; }
unsigned leftOf(unsigned i) { return i % 128 == 0 ? i : i - 1; }

TEST(Emulator, RunsGridsAndScalars) {
  std::vector<float> values = {1, 2, 3, 4, 5};
  GuardedBuffer x = GuardedBuffer::of<float>(values), y(5 * sizeof(float));
  ASSERT_EQ(messageOf(module().run("scale", {.grid = {3}, .block = {2}}, x, y, 2.5f, 5)), "");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(y.as<float>()[i], values[i] * 2.5f);
}

TEST(Emulator, PassesStructsByValue) {
  struct Pair {
    long long first;
    float second;
  } pair = {40, 2.5f};
  GuardedBuffer y(sizeof(float));
  ASSERT_EQ(messageOf(module().run("structArgument", {}, pair, y)), "");
  EXPECT_EQ(y.as<float>()[0], 42.5f);
}

TEST(Emulator, SynchronisesBlocks) { EXPECT_EQ(wrongElements("reverse", 128, 3, reversed), 0); }

TEST(Emulator, ShowsAMissingBarrier) {
  EXPECT_GT(wrongElements("reverseRacing", 128, 1, reversed), 0);
  EXPECT_GT(wrongElements("leftRacing", 128, 2, leftOf), 0); // the second block takes the other order
  EXPECT_GT(wrongElements("warpRacing", 32, 1, [](unsigned i) { return 31 - i; }), 0);
}

TEST(Emulator, ExchangesLanes) {
  GuardedBuffer xors(128), up(128), down(128), index(128), ballot(128), wide(256);
  ASSERT_EQ(messageOf(module().run("shuffles", {.block = {32}}, xors, up, down, index, ballot, wide)), "");
  for (int t = 0; t < 32; ++t) {
    EXPECT_EQ(xors.as<int>()[t], t ^ 5);
    EXPECT_EQ(up.as<int>()[t], t % 8 >= 3 ? t - 3 : t);
    EXPECT_EQ(down.as<int>()[t], t + 2 < 32 ? t + 2 : t);
    EXPECT_EQ(index.as<int>()[t], 7);
    EXPECT_EQ(ballot.as<unsigned>()[t], 0x49249249u);
    EXPECT_EQ(wide.as<double>()[t], (t ^ 1) + 0.5);
  }
  GuardedBuffer out(128);
  ASSERT_EQ(messageOf(module().run("halves", {.block = {32}}, out)), "");
  for (int t = 0; t < 32; ++t) EXPECT_EQ(out.as<int>()[t], t < 16 ? t ^ 1 : t ^ 2);
}

TEST(Emulator, GivesDynamicSharedMemory) {
  GuardedBuffer y(100 * sizeof(int));
  ASSERT_EQ(messageOf(module().run("dynamicTile", {.block = {64}, .sharedBytes = 400}, y, 100)), "");
  for (int i = 0; i < 100; ++i) EXPECT_EQ(y.as<int>()[i], (99 - i) * 3);
}

TEST(Emulator, CountsAtomically) {
  unsigned zero = 0;
  GuardedBuffer counter = GuardedBuffer::of<unsigned>(zero);
  ASSERT_EQ(messageOf(module().run("count", {.grid = {3, 2}, .block = {16, 4}}, counter)), "");
  EXPECT_EQ(counter.as<unsigned>()[0], 384u);
}

TEST(Emulator, ReportsDivergentBarriers) {
  std::string lines = messageOf(module().run("divergentLines", {.block = {64}}));
  EXPECT_NE(lines.find("divergent barrier: thread 0 waits at __syncthreads in line"), std::string::npos) << lines;
  EXPECT_NE(lines.find("kernel 'divergentLines': block (0, 0, 0)"), std::string::npos) << lines;
  std::string early = messageOf(module().run("earlyReturn", {.block = {64}}));
  EXPECT_NE(early.find("but thread 32 has returned"), std::string::npos) << early;
}

TEST(Emulator, ReportsDeadlocksAtShuffles) {
  std::string missing = messageOf(module().run("shuffleWithoutLane", {.block = {32}}));
  EXPECT_NE(missing.find("deadlock: thread 0 waits at __shfl_sync"), std::string::npos) << missing;
  EXPECT_NE(missing.find("but thread 16 waits at __syncthreads"), std::string::npos) << missing;
  GuardedBuffer y(128);
  std::string outside = messageOf(module().run("shuffleOutsideMask", {.block = {32}}, y));
  EXPECT_NE(outside.find("a shuffle reads a lane that is not in its mask"), std::string::npos) << outside;
  std::string ragged = messageOf(module().run("fullMaskShuffle", {.block = {20}}, y));
  EXPECT_NE(ragged.find("names lane 20, but the warp has 20 threads"), std::string::npos) << ragged;
  // and the process is fit for the next launch
  ASSERT_EQ(messageOf(module().run("fullMaskShuffle", {.block = {32}}, y)), "");
}

TEST(Emulator, ReportsOverflows) {
  if (kAddressSanitizer) {
    GuardedBuffer y(5 * sizeof(float));
    EXPECT_DEATH((void)messageOf(module().run("writePast", {}, y, 5, 0)), "AddressSanitizer");
    EXPECT_DEATH((void)messageOf(module().run("sharedPast", {}, y, 32)),
                 "AddressSanitizer: global-buffer-overflow|index 32 out of bounds");
    return;
  }
  GuardedBuffer y(5 * sizeof(float));
  std::string past = messageOf(module().run("writePast", {}, y, 5, 0));
  EXPECT_EQ(past, "kernel 'writePast', argument 0: wrote 4 byte(s) past the end of a buffer of 20 bytes");
  GuardedBuffer z(5 * sizeof(float));
  std::string before = messageOf(module().run("writePast", {}, z, 0, -1));
  EXPECT_NE(before.find("before the start of a buffer of 20 bytes"), std::string::npos) << before;
  GuardedBuffer out(101 * sizeof(int));
  std::string shared = messageOf(module().run("dynamicTile", {.block = {64}, .sharedBytes = 400}, out, 101));
  EXPECT_NE(shared.find("dynamic shared memory: wrote 4 byte(s) past the end"), std::string::npos) << shared;
}

TEST(Emulator, ReportsBadTextAndBadLaunches) {
  auto nothing = fusor::tests::testEmulator().compile("int x;");
  ASSERT_FALSE(static_cast<bool>(nothing));
  EXPECT_EQ(llvm::toString(nothing.takeError()), "emulator: the text has no '__global__ void name(...)'");
  auto broken =
      fusor::tests::testEmulator().compile("extern \"C\" __global__ void broken(int *p) { *p = undeclared; }");
  ASSERT_FALSE(static_cast<bool>(broken));
  std::string said = llvm::toString(broken.takeError());
  EXPECT_NE(said.find("kernel.cu:1"), std::string::npos) << said;
  EXPECT_NE(said.find("undeclared"), std::string::npos) << said;
  EXPECT_NE(messageOf(module().run("missing", {})).find("no kernel 'missing'; the text has scale, reverse"),
            std::string::npos);
  EXPECT_NE(messageOf(module().run("count", {.block = {1025}})).find("1 to 1024 threads"), std::string::npos);
  EXPECT_NE(messageOf(module().run("count", {.grid = {0}})).find("cannot be launched"), std::string::npos);
}

} // namespace
