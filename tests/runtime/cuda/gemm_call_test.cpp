// How much of a fusion around a GEMM becomes the library's call.
#include "frontend/text/parser.h"
#include "passes/pipeline.h"
#include "runtime/cuda/gemm_call.h"
#include "gtest/gtest.h"

using namespace fusor;
using namespace fusor::runtime;

namespace {

/// "%value: type, bias" for the GEMM's cluster of `body`, a function over x: bf16[B, 64] (f32 master @w, @b).
std::string partOf(llvm::StringRef body) {
  ir::Target target;
  target.kind = ir::DeviceKind::cuda, target.hasFp8 = true;
  auto module = frontend::parseModule(("dim B in 1..64\n" + body).str(), "test.fir");
  if (!module) return llvm::toString(module.takeError());
  passes::PassOptions options;
  passes::PassContext context(options);
  if (auto error = passes::runPasses(**module, {"layout", "fusion"}, context)) return llvm::toString(std::move(error));
  for (const auto &function : (*module)->functions())
    for (const ir::Op &op : function->block().ops()) {
      auto flat = codegen::flatten(op);
      if (!flat) return llvm::toString(flat.takeError());
      auto plan = codegen::planContraction(*flat);
      if (!plan) {
        llvm::consumeError(plan.takeError());
        continue;
      }
      GemmPart part = gemmPart(*plan, flat->anchor->result());
      std::string text = part.value.type().str();
      if (std::string why = whyNoLibraryGemm(*plan, target); !why.empty()) text = why + ": " + text;
      if (part.call.bias) text += " with bias";
      if (part.call.scales[0] && part.call.scales[1]) text += ", scaled twice";
      if (part.call.fastAccumulation) text += ", fast";
      if (!fitsAllSizes(part.call)) text += ", perhaps";
      if (wholeCall(*plan, part)) text += ", all of it";
      return text;
    }
  return "no GEMM";
}

TEST(GemmPart, TakesTheBiasAndTheRounding) {
  EXPECT_EQ(partOf("func @f(%x: bf16[B, 64], %w: bf16[32, 64], %b: bf16[32]) -> bf16[B, 32] {\n"
                   "  %y = linear %x, %w, bias = %b\n  return %y\n}"),
            "bf16[B, 32] with bias, all of it");
  EXPECT_EQ(partOf("func @f(%x: bf16[B, 64], %w: bf16[32, 64], %b: bf16[32]) -> bf16[B, 32] {\n"
                   "  %h = linear %x, %w, bias = %b\n  %y = gelu %h\n  return %y\n}"),
            "bf16[B, 32] with bias");
  EXPECT_EQ(partOf("func @f(%dy: bf16[B, 64], %w: bf16[64, 32], %h: bf16[B, 32]) -> bf16[B, 32] {\n"
                   "  %d = linear_input_grad %dy, %w\n  %y = gelu_grad %d, %h\n  return %y\n}"),
            "bf16[B, 32]");
  EXPECT_EQ(partOf("func @f(%x: f32[B, 64], %w: f32[32, 64], %b: f32[32]) -> f32[B, 32] {\n"
                   "  %h = linear %x, %w, bias = %b\n  %y = gelu %h\n  return %y\n}"),
            "f32[B, 32] with bias");
}

TEST(GemmPart, StopsAtWhatSomethingElseReads) {
  // The bias is wider than what is stored: the library would have rounded it.
  EXPECT_EQ(partOf("func @f(%x: bf16[B, 64], %w: bf16[32, 64], %b: f32[32]) -> bf16[B, 32] {\n"
                   "  %h = linear %x, %w {out = f32}\n  %s = add %h, %b\n  %y = cast %s {to = bf16}\n  return %y\n}"),
            "f32[B, 32]");
  // The product is read before it is rounded.
  EXPECT_EQ(partOf("func @f(%x: bf16[B, 64], %w: bf16[32, 64]) -> bf16[B, 32] {\n"
                   "  %h = linear %x, %w {out = f32}\n  %c = cast %h {to = bf16}\n  %r = relu %h\n"
                   "  %q = cast %r {to = bf16}\n  %y = add %c, %q\n  return %y\n}"),
            "f32[B, 32]");
}

// An FP8 product and what behind it is the call's: `types` of x and w.
std::string fp8PartOf(llvm::StringRef types, llvm::StringRef epilogue, llvm::StringRef k = "64",
                      llvm::StringRef op = "linear %x, %w {fast_accum = true, out = f32}",
                      llvm::StringRef w = "[32, 64]") {
  auto [x, wType] = types.split(' ');
  return partOf("func @f(%x: " + x.str() + "[B, " + k.str() + "], %w: " + wType.str() + w.str() +
                ", %b: bf16[32], %r: bf16[B, 32], %sx: f32[], %sw: f32[]) -> " + epilogue.split('|').first.str() +
                " {\n  %p = " + op.str() + "\n  %s = mul %p, %sx\n  %t = mul %s, %sw\n" +
                epilogue.split('|').second.str() + "\n  return %y\n}");
}

constexpr char kBiased[] = "bf16[B, 32]|  %c = cast %b {to = f32}\n  %u = add %t, %c\n  %y = cast %u {to = bf16}",
               kPlain[] = "bf16[B, 32]|  %y = cast %t {to = bf16}", kWide[] = "f32[B, 32]|  %y = mul %t, %t",
               kResidual[] = "bf16[B, 32]|  %c = cast %b {to = f32}\n  %u = add %t, %c\n  %v = cast %u {to = bf16}\n"
                             "  %y = add %v, %r";

TEST(GemmPart, TakesTheScalesOfFp8) {
  EXPECT_EQ(fp8PartOf("f8e4m3 f8e4m3", kBiased), "bf16[B, 32] with bias, scaled twice, fast, all of it");
  EXPECT_EQ(fp8PartOf("f8e5m2 f8e4m3", kPlain), "bf16[B, 32], scaled twice, fast, all of it");
  EXPECT_EQ(fp8PartOf("f8e4m3 f8e5m2", kWide), "f32[B, 32], scaled twice, fast");
  EXPECT_EQ(fp8PartOf("f8e4m3 f8e4m3", kResidual), "bf16[B, 32] with bias, scaled twice, fast");
  EXPECT_EQ(fp8PartOf("f8e4m3 f8e4m3", kPlain, "64", "linear %x, %w {out = f32}"),
            "bf16[B, 32], scaled twice, all of it");
}

TEST(GemmPart, SaysWhyAnFp8ProductIsNone) {
  EXPECT_EQ(fp8PartOf("f8e5m2 f8e5m2", kPlain).find("cuBLASLt has no product of two E5M2: "), 0u);
  EXPECT_EQ(fp8PartOf("f8e4m3 f8e4m3", kPlain, "40", "linear %x, %w {out = f32}", "[32, 40]")
                .find("cuBLASLt's FP8 needs multiples of 16, it has 40 terms a sum: "),
            0u);
  EXPECT_EQ(fp8PartOf("f8e4m3 f8e4m3", kPlain, "64", "linear_input_grad %x, %w {out = f32}", "[64, 32]")
                .find("cuBLASLt's FP8 operands lie along the sum: "),
            0u);
  EXPECT_EQ(partOf("func @f(%g: f8e5m2[32, B], %x: f8e4m3[16, B]) -> f32[32, 16] {\n"
                   "  %y = linear %g, %x {out = f32}\n  return %y\n}"),
            "f32[32, 16], perhaps, all of it");
}

} // namespace
