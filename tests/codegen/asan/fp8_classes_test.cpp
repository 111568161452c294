// Every class of kernel that reads or writes FP8, in the emulator under AddressSanitizer and UBSan.
#include "frontend/nn/modules.h"
#include "passes/pipeline.h"
#include "tests/codegen/fp8_text.h"
#include "tests/codegen/kernel_checker.h"
#include "runtime/emulator/sanitizer.h"
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
  checker.add(kTwoTransposedAndALateInput, {{{"B", 77}}}, options);
  checker.add(R"(
dim B in 1..1000
func @moves(%a: f8e4m3[B, 50], %b: f8e4m3[B, 14]) -> f8e4m3[50, B], f8e4m3[B, 64] {
  %t = transpose %a {perm = [1, 0]}
  %c = concat %a, %b {axis = 1}
  return %t, %c
})",
              {{{"B", 77}}}, options);
  checker.run();
}

} // namespace
