// gemm_simt.cuh: transposes, types, ragged sizes, leading dimensions, batches, epilogues with column sums.
#include "tests/codegen/device/nvrtc.h"
#include "tests/codegen/device/support.h"
#include "gtest/gtest.h"

using namespace fusor::codegen;
using namespace fusor::codegen::tests;

namespace {

constexpr const char *kKernels = R"cuda(
struct Plain { // C = A·B, row stride ldc
  float *c; i64 ldc, strideC;
  static constexpr bool kColumnSum = false;
  __device__ float operator()(i64 batch, i64 row, i64 column, float sum) const {
    c[batch * strideC + row * ldc + column] = sum;
    return sum;
  }
};
struct BiasRelu { // y = relu(sum + bias), pre keeps the value before; the column sum is over y
  bf16 *y; float *pre; const float *bias; i64 ldc, M;
  static constexpr bool kColumnSum = true;
  __device__ float operator()(i64 batch, i64 row, i64 column, float sum) const {
    float value = sum + bias[column];
    i64 at = (batch * M + row) * ldc + column;
    pre[at] = value;
    value = value > 0 ? value : 0;
    store(y + at, value);
    return value;
  }
};
template <class Tile, bool kTransposeA, bool kTransposeB, class A, class B>
__device__ void plain(const void *a, const void *b, float *c, i64 M, i64 N, i64 K, i64 lda, i64 ldb, i64 ldc,
                      i64 strideA, i64 strideB, i64 strideC) {
  GemmOperands<A, B> operands = {(const A *)a, (const B *)b, M, N, K, lda, ldb, strideA, strideB};
  gemmSimt<Tile, kTransposeA, kTransposeB>(operands, Plain{c, ldc, strideC}, (float *)nullptr);
}
)cuda";

// One kernel for each combination the tests use; `few` leaves out the f32 ones, which say nothing new to NVRTC.
std::string kernelText(bool few = false) {
  std::string text = kKernels;
  const char *parameters = "(const void *a, const void *b, float *c, i64 M, i64 N, i64 K, i64 lda, i64 ldb, i64 ldc, "
                           "i64 strideA, i64 strideB, i64 strideC)";
  auto gemm = [&](const std::string &name, const std::string &arguments) {
    text += "extern \"C\" __global__ void __launch_bounds__(256) " + name + parameters + " {\n  plain<" + arguments +
            ">(a, b, c, M, N, K, lda, ldb, ldc, strideA, strideB, strideC);\n}\n";
  };
  for (const char *tile : {"128", "64"})
    for (const char *transposes : {"nn", "nt", "tn", "tt"}) {
      if (few) break;
      std::string flags =
          std::string(transposes[0] == 't' ? "true" : "false") + ", " + (transposes[1] == 't' ? "true" : "false");
      gemm(std::string("gemm") + tile + transposes, std::string("GemmTile") + tile + ", " + flags + ", float, float");
    }
  gemm("gemm_bf16", "GemmTile64, false, true, bf16, bf16");
  gemm("gemm_f16_f32", "GemmTile128, false, true, f16, float");
  gemm("gemm_bf16_tn", "GemmTile128, true, false, bf16, bf16");
  gemm("gemm_fp8", "GemmTile64, false, true, f8e4m3, f8e5m2");
  for (const char *tile : {"64", "128"})
    text += std::string("extern \"C\" __global__ void __launch_bounds__(256) biasRelu") + tile +
            "(const bf16 *x, const bf16 *w, const float *bias, bf16 *y, float *pre, float *partials, i64 M, i64 N, i64 "
            "K, i64 strideX) {\n"
            "  GemmOperands<bf16, bf16> operands = {x, w, M, N, K, K, K, strideX, 0};\n"
            "  gemmSimt<GemmTile" +
            tile + ", false, true>(operands, BiasRelu{y, pre, bias, N, M}, partials);\n}\n";
  return text;
}

const EmulatedModule &module() {
  static const EmulatedModule compiled = compileWithDevice({"gemm_simt.cuh"}, kernelText());
  return compiled;
}

unsigned blocks(long long M, long long N, int tile, long long batch = 1) {
  return static_cast<unsigned>(batch * ((M + tile - 1) / tile) * ((N + tile - 1) / tile));
}

// A stored matrix: its bytes as the kernel gets them, its values as doubles.
struct Matrix {
  std::vector<double> values;
  GuardedBuffer bytes;
};
enum class Type { F32, Bf16, F16, E4M3, E5M2 };

Matrix stored(Type type, size_t count, unsigned seed) {
  std::vector<float> random = randomValues(count, seed);
  std::vector<double> values(random.begin(), random.end());
  if (type == Type::F32) return {values, GuardedBuffer::of<float>(random)};
  const Format &format = type == Type::Bf16 ? kBf16 : type == Type::F16 ? kF16 : type == Type::E4M3 ? kE4M3 : kE5M2;
  std::vector<uint16_t> wide(count);
  std::vector<uint8_t> narrow(count);
  for (size_t i = 0; i < count; ++i) {
    uint32_t code = format.encodeMagnitude(std::fabs(values[i])) | (values[i] < 0 ? 1u << (format.bits() - 1) : 0);
    wide[i] = static_cast<uint16_t>(code), narrow[i] = static_cast<uint8_t>(code);
    values[i] = format.decode(code);
  }
  return {values, format.bits() == 16 ? GuardedBuffer::of<uint16_t>(wide) : GuardedBuffer::of<uint8_t>(narrow)};
}

struct Case {
  std::string kernel;
  int tile;
  bool transposeA, transposeB;
  long long M, N, K;
  Type a = Type::F32, b = Type::F32;
  long long padding = 0; // lda, ldb, ldc are this much larger than they need to be
  long long batch = 1;
};

void check(const Case &c) {
  const long long lda = (c.transposeA ? c.M : c.K) + c.padding, ldb = (c.transposeB ? c.K : c.N) + c.padding;
  const long long ldc = c.N + c.padding;
  const long long strideA = lda * (c.transposeA ? c.K : c.M), strideB = ldb * (c.transposeB ? c.N : c.K),
                  strideC = ldc * c.M;
  Matrix a = stored(c.a, strideA * c.batch, 11), b = stored(c.b, strideB * c.batch, 12);
  GuardedBuffer out(strideC * c.batch * sizeof(float));
  ASSERT_EQ(messageOf(module().run(c.kernel, {.grid = {blocks(c.M, c.N, c.tile, c.batch)}, .block = {256}}, a.bytes,
                                   b.bytes, out, c.M, c.N, c.K, lda, ldb, ldc, strideA, strideB, strideC)),
            "");
  int wrong = 0;
  for (long long batch = 0; batch < c.batch; ++batch)
    for (long long m = 0; m < c.M; ++m)
      for (long long n = 0; n < ldc; ++n) {
        float got = out.as<float>()[batch * strideC + m * ldc + n];
        if (n >= c.N) { // the padding is not C's to write
          wrong += !std::isnan(got);
          continue;
        }
        double sum = 0, size = 0;
        for (long long k = 0; k < c.K; ++k) {
          double product = a.values[batch * strideA + (c.transposeA ? k * lda + m : m * lda + k)] *
                           b.values[batch * strideB + (c.transposeB ? n * ldb + k : k * ldb + n)];
          sum += product, size += std::fabs(product);
        }
        if (!(std::fabs(got - sum) <= 1e-6 * size * (1 + std::sqrt(c.K) / 8)) && ++wrong < 4)
          ADD_FAILURE() << "[" << batch << "][" << m << "][" << n << "] = " << got << ", expected " << sum;
      }
  EXPECT_EQ(wrong, 0) << c.kernel << " " << c.M << " x " << c.N << " x " << c.K;
}

TEST(GemmSimt, AllTransposesRaggedSizes) {
  for (int tile : {64, 128})
    for (bool transposeA : {false, true})
      for (bool transposeB : {false, true}) {
        std::string kernel = "gemm" + std::to_string(tile) + (transposeA ? "t" : "n") + (transposeB ? "t" : "n");
        for (auto [M, N, K] : {std::array<long long, 3>{1, 1, 1},
                               {31, 33, 7},
                               {127, 130, 33},
                               {130, 31, 16},
                               {1, 130, 127},
                               {33, 1, 40},
                               {128, 128, 32}})
          check({kernel, tile, transposeA, transposeB, M, N, K});
      }
}

TEST(GemmSimt, EmptyContractionGivesZeros) {
  check({"gemm64nt", 64, false, true, 33, 31, 0});
  check({"gemm128tn", 128, true, false, 33, 31, 0});
}

TEST(GemmSimt, StorageTypes) {
  for (long long K : {33, 64}) { // unaligned and vector loads
    check({"gemm_bf16", 64, false, true, 65, 70, K, Type::Bf16, Type::Bf16});
    check({"gemm_f16_f32", 128, false, true, 65, 70, K, Type::F16, Type::F32});
    check({"gemm_bf16_tn", 128, true, false, 130, 66, K, Type::Bf16, Type::Bf16});
    check({"gemm_fp8", 64, false, true, 65, 70, K, Type::E4M3, Type::E5M2});
  }
}

TEST(GemmSimt, LeadingDimensionsAndBatches) {
  check({"gemm64nn", 64, false, false, 70, 65, 33, Type::F32, Type::F32, /*padding=*/3, /*batch=*/3});
  check({"gemm128tt", 128, true, true, 70, 64, 32, Type::F32, Type::F32, /*padding=*/4, /*batch=*/2});
}

TEST(GemmSimt, EpilogueAndColumnSums) {
  for (int tile : {64, 128})
    for (auto [M, N] : {std::array<long long, 2>{1, 1}, {130, 65}, {300, 31}}) {
      const long long K = 40, batch = 2;
      Matrix x = stored(Type::Bf16, batch * M * K, 1), w = stored(Type::Bf16, N * K, 2);
      std::vector<float> bias = randomValues(N, 3);
      const long long rowTiles = (M + tile - 1) / tile;
      GuardedBuffer biases = GuardedBuffer::of<float>(bias), y(batch * M * N * 2), pre(batch * M * N * 4),
                    partials(batch * rowTiles * N * 4);
      ASSERT_EQ(messageOf(module().run("biasRelu" + std::to_string(tile),
                                       {.grid = {blocks(M, N, tile, batch)}, .block = {256}}, x.bytes, w.bytes, biases,
                                       y, pre, partials, M, N, K, M * K)),
                "");
      for (long long b = 0; b < batch; ++b)
        for (long long n = 0; n < N; ++n)
          for (long long t = 0; t < rowTiles; ++t) {
            double columnSum = 0;
            for (long long m = t * tile; m < std::min(M, (t + 1) * tile); ++m) {
              double sum = bias[n];
              for (long long k = 0; k < K; ++k) sum += x.values[(b * M + m) * K + k] * w.values[n * K + k];
              float before = pre.as<float>()[(b * M + m) * N + n];
              ASSERT_NEAR(before, sum, 2e-5);
              double after = kBf16.decode(y.as<uint16_t>()[(b * M + m) * N + n]);
              ASSERT_EQ(after, roundedTo(kBf16, std::fmax(before, 0.0f)));
              columnSum += std::fmax(before, 0.0f);
            }
            ASSERT_NEAR(partials.as<float>()[(b * rowTiles + t) * N + n], columnSum, 1e-4);
          }
    }
}

TEST(GemmSimt, CompilesForGpus) {
  expectCompilesUnderNvrtc(deviceLibrary({"gemm_simt.cuh"}) + kernelText(/*few=*/true));
}

} // namespace
