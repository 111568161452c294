// The made-up op in passes/: differentiated, fused with its neighbours, converted to bf16, all from its entry.
#include "frontend/text/parser.h"
#include "ir/reference/reference.h"
#include "passes/pipeline.h"
#include "gtest/gtest.h"

using namespace fusor;
using namespace fusor::ir;

namespace {

constexpr llvm::StringLiteral kTraining = R"(dim B in 1..64

param @w : f32[8, 4]

func @forward(%x: f32[B, 4]) -> f32[] {
  %h = linear %x, @w : f32[B, 8]
  %g = gelu %h : f32[B, 8]
  %m = made_up %h, %g : f32[B, 8]
  %t = tanh %m : f32[B, 8]
  %loss = mean %t : f32[]
  return %loss
}
)";

std::unique_ptr<Module> compiled(passes::PipelineKind kind, const passes::PassOptions &options) {
  auto module = frontend::parseModule(kTraining, "made_up.fir");
  if (!module) {
    ADD_FAILURE() << llvm::toString(module.takeError());
    return nullptr;
  }
  passes::PassContext context(options);
  if (auto error = passes::runPipeline(**module, kind, context)) ADD_FAILURE() << llvm::toString(std::move(error));
  return std::move(*module);
}

const Op *fusionWith(const Function &function, llvm::StringRef name) {
  for (const Op &op : function.block().ops())
    if (op.body())
      for (const Op &inner : op.body()->ops())
        if (inner.is(name)) return &op;
  return nullptr;
}

bool contains(const Op &fusion, llvm::StringRef name) {
  for (const Op &inner : fusion.body()->ops())
    if (inner.is(name)) return true;
  return false;
}

TEST(MadeUpOp, IsFusedWithItsNeighbours) {
  auto module = compiled(passes::PipelineKind::infer, {});
  ASSERT_TRUE(module);
  const Op *fusion = fusionWith(*module->function("forward"), "made_up");
  ASSERT_NE(fusion, nullptr) << module->str();
  EXPECT_TRUE(contains(*fusion, "gelu") && contains(*fusion, "tanh")) << module->str();
}

TEST(MadeUpOp, IsDifferentiatedAndTrained) {
  auto module = compiled(passes::PipelineKind::train, {});
  ASSERT_TRUE(module);
  ASSERT_NE(module->function("train_step"), nullptr);
  EXPECT_NE(module->str().find("adamw"), std::string::npos) << module->str();
}

TEST(MadeUpOp, ComputesTheSameFusedAndUnfused) {
  auto unfused = frontend::parseModule(kTraining, "made_up.fir");
  auto fused = compiled(passes::PipelineKind::infer, {});
  ASSERT_TRUE(unfused && fused);
  RefTensor x, w;
  x.shape = {3, 4}, w.shape = {8, 4};
  for (int i = 0; i < 12; ++i) x.data.push_back(0.1 * i - 0.5);
  for (int i = 0; i < 32; ++i) w.data.push_back(0.7 - 0.05 * i);
  RefState state;
  state["w"] = w;
  auto a = llvm::cantFail(evaluate(*(*unfused)->function("forward"), x, state));
  auto b = llvm::cantFail(evaluate(*fused->function("forward"), x, state));
  EXPECT_EQ(a.results[0].data, b.results[0].data);
}

TEST(MadeUpOp, ComputesInLowPrecision) {
  passes::PassOptions options;
  options.precision = DType::bf16;
  options.wideHeadBelow = 0;
  auto module = compiled(passes::PipelineKind::infer, options);
  ASSERT_TRUE(module);
  EXPECT_NE(module->str().find("bf16"), std::string::npos) << module->str();
}

} // namespace
