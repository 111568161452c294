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
      if (part.call.bias) text += " with bias";
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

} // namespace
