// Every class of kernel that reads or writes FP8, in the emulator under AddressSanitizer and UBSan.
#include "frontend/nn/modules.h"
#include "passes/pipeline.h"
#include "tests/codegen/kernel_checker.h"
#include "tests/support/emulator/sanitizer.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"
#include <set>

using namespace fusor;
using namespace fusor::codegen::tests;

namespace {

// A training step whose FP8 copies are transposed by who makes them, or read as they are.
std::unique_ptr<ir::Module> trainStep(bool forLibrary) {
  nn::GptConfig config{.vocab = 32, .width = 32, .heads = 2, .layers = 1, .ffn = 64, .context = 16};
  auto module = nn::gptForward(config);
  passes::PassOptions options;
  options.precision = ir::DType::bf16;
  options.fp8.emplace();
  options.target.kind = ir::DeviceKind::cuda;
  options.target.tier = forLibrary ? ir::ArchTier::sm90a : ir::ArchTier::sm80;
  options.target.hasFp8 = options.target.hasCublasLt = forLibrary;
  passes::PassContext context(options);
  if (auto error = passes::runPipeline(*module, passes::PipelineKind::train, context))
    ADD_FAILURE() << llvm::toString(std::move(error));
  return module;
}

// The kinds of the fusions with a value in FP8.
void addFp8Kinds(const ir::Module &module, std::set<std::string> &kinds) {
  auto isFp8 = [](ir::Value v) { return v && ir::isFp8(v.dtype()); };
  for (const auto &function : module.functions())
    for (const ir::Op &op : function->block().ops())
      if (op.is("fusion") && (llvm::any_of(op.operands(), isFp8) || llvm::any_of(op.results(), isFp8)))
        kinds.insert(op.attr<std::string>("kind"));
}

TEST(Fp8UnderAsan, EveryKernelOfTheTrainingStep) {
  ASSERT_TRUE(emulator::kAddressSanitizer);
  KernelChecker checker;
  KernelChecker::Options options;
  options.classes = 32, options.deviation = 0.1, options.tolerance = 8, options.inPlaceToo = false;
  std::set<std::string> kinds;
  for (bool forLibrary : {true, false}) {
    auto module = trainStep(forLibrary);
    addFp8Kinds(*module, kinds);
    options.tier = forLibrary ? ir::ArchTier::sm90a : ir::ArchTier::sm80;
    checker.add(std::move(module), {{{"B", 2}}}, options);
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"column", "contraction", "multi_tensor", "pointwise", "row"}));
  checker.run();
}

// Tiles of rows beside rows on their way, ragged; and what only moves.
TEST(Fp8UnderAsan, TransposedTilesAndMovement) {
  KernelChecker checker;
  KernelChecker::Options options;
  options.tier = ir::ArchTier::sm90a;
  checker.add(R"(
dim B in 1..1000
func @rows(%dy: bf16[B, 768], %x: bf16[B, 768], %w: f32[768], %mean: f32[B, 1], %rstd: f32[B, 1], %r: bf16[B, 768], %s: f32[]) -> f8e4m3[768, B], f32[768], f32[768], f8e5m2[B, 768], f8e5m2[768, B] {
  %h = normalize %x, %rstd, mean = %mean, weight = %w {out = f32}
  %hq = fp8_cast %h, %s
  %ht = transpose %hq {perm = [1, 0]}
  %dx = layer_norm_grad %dy, %x, %mean, %rstd, weight = %w
  %dw, %db = layer_norm_param_grad %dy, %x, %mean, %rstd
  %y = add %dx, %r
  %q = fp8_cast %y, %s {dtype = f8e5m2}
  %t = transpose %q {perm = [1, 0]}
  return %ht, %dw, %db, %q, %t
}
func @moves(%a: f8e4m3[B, 50], %b: f8e4m3[B, 14]) -> f8e4m3[50, B], f8e4m3[B, 64] {
  %t = transpose %a {perm = [1, 0]}
  %c = concat %a, %b {axis = 1}
  return %t, %c
})",
              {{{"B", 77}}}, options);
  checker.run();
}

} // namespace
