// FP8 on tensor cores: products by cuBLASLt against float64 of the dequantised operands, and training with them.
#include "frontend/text/parser.h"
#include "tests/gpu/tiny.h"
#include "tests/support/fp8_definition.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace fusor;
using namespace fusor::runtime;
using namespace fusor::tests;

namespace {

#define NEED_FP8()                                                                                                     \
  if (std::string why = whyNoGpu(); !why.empty()) GTEST_SKIP() << why;                                                 \
  if (!gpuTarget().hasFp8) GTEST_SKIP() << "the GPU has no FP8 tensor cores"

// y[M, N] = x[M, K] * w[N, K]^T * sx * sw (+ b): rows of x, or its columns, are the symbol B.
struct Product {
  ir::DType x = ir::DType::f8e4m3, w = ir::DType::f8e4m3;
  int64_t n = 96, k = 512; // k = 0: the sum is B long, and x has 32 rows
  bool hasBias = true, isWide = false, isFast = true;

  std::string text() const {
    std::string length = k ? std::to_string(k) : "B", rows = k ? "B" : "32", columns = std::to_string(n);
    std::string out = (isWide ? "f32[" : "bf16[") + rows + ", " + columns + "]";
    std::string body = "dim B in 1..4096\nfunc @main(%x: " + ir::name(x).str() + "[" + rows + ", " + length +
                       "], %w: " + ir::name(w).str() + "[" + columns + ", " + length + "], %b: bf16[" + columns +
                       "], %sx: f32[], %sw: f32[]) -> " + out + " {\n  %p = linear %x, %w {out = f32" +
                       (isFast ? ", fast_accum = true" : "") + "}\n  %s = mul %p, %sx\n  %t = mul %s, %sw\n";
    if (hasBias) body += "  %c = cast %b {to = f32}\n  %u = add %t, %c\n";
    std::string sum = hasBias ? "%u" : "%t";
    return body + (isWide ? "" : "  %y = cast " + sum + " {to = bf16}\n") + "  return " + (isWide ? sum : "%y") +
           "\n}\n";
  }
  std::string name() const {
    return (ir::name(x) + " x " + ir::name(w) + ", " + std::to_string(n) + " x " + std::to_string(k) +
            (hasBias ? ", bias" : "") + (isWide ? ", wide" : "") + (isFast ? ", fast" : ""))
        .str();
  }
};

llvm::Expected<std::unique_ptr<Program>> compiled(const Product &product, const ir::Target &target) {
  auto module = frontend::parseModule(product.text(), "product.fir");
  if (!module) return module.takeError();
  passes::PassOptions options;
  options.target = target;
  passes::PassContext context(options);
  if (auto error = passes::runPasses(**module, {"layout", "fusion"}, context)) return error;
  CompileOptions strict;
  strict.strict = true;
  return compile(std::move(*module), target, strict);
}

std::vector<uint8_t> randomFp8(ir::DType type, int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<uint8_t> bytes(count);
  for (uint8_t &byte : bytes) {
    do byte = static_cast<uint8_t>(engine());
    while (!std::isfinite(ir::loadElement(type, &byte, 0)) || std::fabs(ir::loadElement(type, &byte, 0)) > 8);
  }
  return bytes;
}

void check(Program &program, const Product &p, int64_t b) {
  int64_t m = p.k ? b : 32, k = p.k ? p.k : b;
  auto x = randomFp8(p.x, m * k, 1), w = randomFp8(p.w, p.n * k, 2);
  std::vector<uint16_t> bias(p.n);
  for (int64_t i = 0; i < p.n; ++i) ir::storeElement(ir::DType::bf16, bias.data(), i, std::sin(i) * 3);
  float sx = 0.37f, sw = 0.011f;
  std::vector<char> y(m * p.n * (p.isWide ? 4 : 2));
  ir::DType out = p.isWide ? ir::DType::f32 : ir::DType::bf16;
  TensorView inputs[] = {{p.x, {m, k}, x.data()},
                         {p.w, {p.n, k}, w.data()},
                         {ir::DType::bf16, {p.n}, bias.data()},
                         {ir::DType::f32, {}, &sx},
                         {ir::DType::f32, {}, &sw}};
  TensorView output{out, {m, p.n}, y.data()};
  if (auto error = program.run("main", inputs, output))
    FAIL() << p.name() << ", B = " << b << ": " << llvm::toString(std::move(error));
  for (int64_t r = 0; r < m; ++r)
    for (int64_t c = 0; c < p.n; ++c) {
      double sum = 0, size = 0;
      for (int64_t t = 0; t < k; ++t) {
        double term = ir::loadElement(p.x, x.data(), r * k + t) * ir::loadElement(p.w, w.data(), c * k + t) * sx * sw;
        sum += term, size += std::fabs(term);
      }
      if (p.hasBias) sum += ir::loadElement(ir::DType::bf16, bias.data(), c);
      // Hopper's FP8 sums keep some 13 bits behind the largest term.
      double allowed = size / 1024 + (p.isWide ? 0 : std::fabs(sum) / 256);
      ASSERT_NEAR(ir::loadElement(out, y.data(), r * p.n + c), sum, allowed)
          << p.name() << ", B = " << b << ", at " << r << ", " << c;
    }
}

std::vector<Product> products() {
  using ir::DType;
  std::vector<Product> all;
  for (auto [x, w] :
       {std::pair{DType::f8e4m3, DType::f8e4m3}, {DType::f8e5m2, DType::f8e4m3}, {DType::f8e4m3, DType::f8e5m2}})
    for (bool isFast : {true, false})
      for (bool hasBias : {true, false})
        all.push_back({.x = x, .w = w, .n = 96, .k = 512, .hasBias = hasBias, .isWide = false, .isFast = isFast});
  all.push_back({.n = 16, .k = 16});
  all.push_back({.n = 2304, .k = 768});
  all.push_back({.x = DType::f8e5m2, .hasBias = false, .isWide = true, .isFast = false});
  return all;
}

// What the checks expect, where there is no GPU too.
TEST(Fp8Products, AreTheCpus) {
  for (const Product &product : products()) {
    PROGRAM(program, compiled(product, ir::Target{}));
    check(program, product, 33);
    if (HasFatalFailure()) return;
  }
}

TEST(Fp8Products, OfTheLibrary) {
  NEED_FP8();
  for (const Product &product : products()) {
    PROGRAM(program, compiled(product, gpuTarget()));
    for (int64_t rows : {16, 256, 33, 1, 130}) {
      check(program, product, rows);
      if (HasFatalFailure()) return;
    }
    auto plans = program.gemmPlans().text;
    EXPECT_EQ(plans.size(), 5u) << product.name() << ": " << program.compileStats().notes.size();
    for (const auto &[shape, plan] : plans)
      EXPECT_EQ(llvm::StringRef(shape).contains("fast accumulation"), product.isFast) << shape;
  }
}

// A sum of 48 terms is the library's, one of 33 a generated kernel's; two E5M2 and 40 columns never are.
TEST(Fp8Products, OtherSizesRunAsOwnKernels) {
  NEED_FP8();
  Product gradient{.x = ir::DType::f8e5m2, .k = 0, .hasBias = false, .isWide = true, .isFast = false};
  PROGRAM(program, compiled(gradient, gpuTarget()));
  check(program, gradient, 48);
  EXPECT_EQ(program.compileStats().ownGemms, 0u);
  check(program, gradient, 33);
  EXPECT_EQ(program.compileStats().ownGemms, 1u);
  EXPECT_EQ(program.gemmPlans().text.size(), 1u);
  for (const Product &other : {Product{.n = 40}, Product{.x = ir::DType::f8e5m2, .w = ir::DType::f8e5m2}}) {
    PROGRAM(own, compiled(other, gpuTarget()));
    check(own, other, 48);
    EXPECT_TRUE(own.gemmPlans().text.empty());
  }
}

llvm::Expected<std::unique_ptr<Program>> fp8Training(const ir::Target &target, CompileOptions options = {}) {
  return trainingProgram(tiny(), ir::DType::bf16, target, std::move(options), true);
}

TEST(Fp8Training, EveryKernelComputesItsBody) {
  NEED_FP8();
  for (bool ownGemm : {false, true}) {
    CompileOptions options;
    options.check = true, options.ownGemm = ownGemm, options.strict = true;
    PROGRAM(program, fp8Training(gpuTarget(), options));
    for (int64_t batch : {1, 3, 17}) step(program, batch, batch);
    if (HasFailure()) FAIL() << (ownGemm ? "own GEMMs" : "cuBLASLt");
  }
}

TEST(Fp8Training, TrainsLikeTheCpu) {
  NEED_FP8();
  PROGRAM(cpu, fp8Training(ir::Target{}));
  PROGRAM(gpu, fp8Training(gpuTarget()));
  EXPECT_TRUE(gpu.fallbacks().empty()) << gpu.fallbacks()[0].where << ": " << gpu.fallbacks()[0].reason;
  for (int64_t i = 0; i < 12; ++i) EXPECT_NEAR(step(gpu, 5, i), step(cpu, 5, i), 2e-2) << "step " << i;
  EXPECT_EQ(gpu.launchesPerRun(), 1u);
  EXPECT_EQ(gpu.compileStats().ownGemms, 0u); // 32 tokens a sequence
  unsigned inFp8 = 0;
  for (const auto &[shape, plan] : gpu.gemmPlans().text) inFp8 += llvm::StringRef(shape).contains("f8e4m3");
  EXPECT_GE(inFp8, 12u) << "qkv, proj, fc1 and fc2, three products each";
}

TEST(Fp8Training, GraphAndEagerAndTwoRunsAreBitEqual) {
  NEED_FP8();
  CompileOptions eager;
  eager.graphs = false;
  PROGRAM(first, fp8Training(gpuTarget()));
  PROGRAM(second, fp8Training(gpuTarget()));
  PROGRAM(launched, fp8Training(gpuTarget(), eager));
  for (int64_t i = 0; i < 20; ++i) {
    int64_t batch = i % 3 == 0 ? 4 : 9;
    float loss = step(first, batch, i);
    EXPECT_EQ(loss, step(second, batch, i));
    EXPECT_EQ(loss, step(launched, batch, i));
  }
}

} // namespace
