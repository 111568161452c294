// Every bf16 value, and a million f32 values of all kinds, to FP8: the definition's bits from the CPU and from the GPU.
#include "frontend/text/parser.h"
#include "tests/gpu/support.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace fusor;
using namespace fusor::runtime;
using namespace fusor::tests;

namespace {

// What the emulator cannot show: from sm_89 on an instruction rounds.
enum class Form { rows, transposed, unsaturated };
void check(const ir::Target &target, ir::DType from, ir::DType to, llvm::ArrayRef<char> values, Form form) {
  bool isTransposed = form == Form::transposed;
  int64_t count = static_cast<int64_t>(values.size()) / ir::byteSize(from);
  std::string x = ir::name(from).str() + "[B, 64]", q = ir::name(to).str() + "[B, 64]",
              t = ir::name(to).str() + "[64, B]";
  std::string text = "dim B in 1..65536\nfunc @main(%x: " + x + ", %s: f32[]) -> " + (isTransposed ? t : q) + " {\n" +
                     (form != Form::unsaturated
                          ? "  %q = fp8_cast %x, %s {dtype = " + ir::name(to).str() + "}\n"
                          : "  %w = cast %x {to = f32}\n  %p = mul %w, %s\n  %q = cast %p {to = " + ir::name(to).str() +
                                ", saturate = false}\n") +
                     (isTransposed ? "  %t = transpose %q {perm = [1, 0]}\n  return %t\n}\n" : "  return %q\n}\n");
  auto module = llvm::cantFail(frontend::parseModule(text, "cast.fir"));
  passes::PassOptions options;
  options.target = target;
  passes::PassContext context(options);
  ASSERT_FALSE(passes::runPasses(*module, {"layout", "fusion"}, context));
  CompileOptions strict;
  strict.strict = true;
  auto program = compile(std::move(module), target, strict);
  ASSERT_TRUE(bool(program)) << llvm::toString(program.takeError());
  int64_t rows = count / 64;
  for (float scale : {1.0f, 3.7f, 1e-30f}) {
    std::vector<uint8_t> got(count);
    TensorView inputs[] = {{from, {rows, 64}, const_cast<char *>(values.data())}, {ir::DType::f32, {}, &scale}};
    TensorView output{to,
                      isTransposed ? llvm::SmallVector<int64_t, 4>{64, rows} : llvm::SmallVector<int64_t, 4>{rows, 64},
                      got.data()};
    if (auto error = (*program)->run("main", inputs, output)) FAIL() << llvm::toString(std::move(error));
    for (int64_t i = 0; i < count; ++i) {
      float product = static_cast<float>(ir::loadElement(from, values.data(), i)) * scale;
      uint8_t byte = got[isTransposed ? i % 64 * rows + i / 64 : i], expected = 0;
      double rounded = form == Form::unsaturated ? ir::roundUnsaturated(to, product) : ir::roundTo(to, product);
      ir::storeElement(to, &expected, 0, rounded);
      if (std::isnan(rounded))
        ASSERT_TRUE(std::isnan(ir::loadElement(to, &byte, 0))) << i;
      else
        ASSERT_EQ(byte, expected) << product << " as " << ir::name(to).str();
    }
  }
}

void checkAll(const ir::Target &target) {
  std::vector<char> bf16(65536 * 2), f32((1 << 20) * 4);
  for (unsigned i = 0; i < 65536; ++i) {
    auto bits = static_cast<uint16_t>(i);
    std::memcpy(&bf16[2 * i], &bits, 2);
  }
  // Any bits, and as many around what FP8 can hold: halfway cases and their neighbours.
  std::mt19937 engine(5);
  for (size_t i = 0; i < f32.size() / 4; ++i) {
    uint32_t bits = engine();
    if (i % 2) bits = (bits & 0x80000000u) | ((100 + bits / 8 % 48) << 23) | ((bits >> 9) % 32 << 18) | (bits % 3);
    std::memcpy(&f32[4 * i], &bits, 4);
  }
  for (ir::DType to : {ir::DType::f8e4m3, ir::DType::f8e5m2})
    for (Form form : {Form::rows, Form::transposed, Form::unsaturated}) {
      check(target, ir::DType::bf16, to, bf16, form);
      check(target, ir::DType::f32, to, f32, form);
      if (testing::Test::HasFatalFailure()) return;
    }
}

TEST(Fp8Conversion, OnTheCpu) { checkAll(ir::Target{}); }

TEST(Fp8Conversion, OnTheGpu) {
  if (std::string why = whyNoGpu(); !why.empty()) GTEST_SKIP() << why;
  checkAll(gpuTarget());
  if (HasFatalFailure()) return;
  checkAll(gpuTarget(ir::ArchTier::simt));
}

} // namespace
