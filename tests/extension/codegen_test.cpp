// The made-up op as CUDA text: its formula in the kernel of the cluster it was fused into.
#include "codegen/emit/emit.h"
#include "frontend/text/parser.h"
#include "passes/pipeline.h"
#include "gtest/gtest.h"

using namespace fusor;
using namespace fusor::ir;

namespace {

TEST(MadeUpOp, IsEmittedInOneKernelWithItsNeighbours) {
  auto module = frontend::parseModule(R"(func @f(%a: f32[64, 32], %b: f32[64, 32]) -> f32[64, 32] {
  %y = made_up %a, %b {strength = 3.0} : f32[64, 32]
  %z = tanh %y : f32[64, 32]
  return %z
}
)",
                                      "made_up.fir");
  ASSERT_TRUE(static_cast<bool>(module)) << llvm::toString(module.takeError());
  passes::PassOptions options;
  options.target.kind = DeviceKind::cuda;
  options.target.arch = "sm_75";
  passes::PassContext context(options);
  auto error = passes::runPipeline(**module, passes::PipelineKind::infer, context);
  ASSERT_FALSE(static_cast<bool>(error)) << llvm::toString(std::move(error));
  auto kernels = codegen::kernelsOf(*(*module)->function("f"), options.target);
  ASSERT_TRUE(kernels.refused.empty()) << kernels.refused[0].reason;
  ASSERT_EQ(kernels.kernels.size(), 1u);
  const std::string &source = kernels.kernels[0].kernel.source;
  EXPECT_NE(source.find("sin"), std::string::npos) << source;
  EXPECT_NE(source.find("tanh"), std::string::npos) << source;
}

} // namespace
