// fp8-tn makes gradients `linear`, and what they are stays known.
#include "frontend/nn/modules.h"
#include "passes/fp8/products.h"
#include "passes/pipeline.h"
#include "tests/passes/models.h"
#include <map>

namespace fusor::test {
namespace {

const nn::GptConfig kTwoBlocks{.vocab = 96, .width = 64, .heads = 2, .layers = 2, .ffn = 256, .context = 32};

TEST(Fp8Products, AThirdOfABlocksProductsIsOfEachRole) {
  for (bool hasLibrary : {false, true}) { // without one, gradients keep ops of their own
    auto module = nn::gptForward(kTwoBlocks);
    passes::PassOptions options;
    options.precision = ir::DType::bf16;
    options.fp8.emplace();
    options.target.kind = ir::DeviceKind::cuda, options.target.tier = ir::ArchTier::sm90a;
    options.target.hasFp8 = options.target.hasCublasLt = hasLibrary;
    passes::PassContext context(options);
    EXPECT_SUCCESS(passes::runPipeline(*module, passes::PipelineKind::train, context));

    std::map<std::string, int> roles, ops;
    for (const ir::Op &fused : module->function("train_step")->block().ops()) {
      if (!fused.body()) continue;
      for (const ir::Op &op : fused.body()->ops()) {
        if (op.def().lowering != ir::Lowering::contraction || !ir::isFp8(op.operand(0u).dtype())) continue;
        ++roles[passes::roleOf(op).str()], ++ops[op.name().str()];
      }
    }
    const std::map<std::string, int> eachThird{{"forward", 8}, {"input gradient", 8}, {"weight gradient", 8}};
    EXPECT_EQ(roles, eachThird) << "qkv, proj, fc1 and fc2 of two blocks";
    if (hasLibrary) {
      EXPECT_EQ(ops, (std::map<std::string, int>{{"linear", 24}})) << "in the library's form";
    }
  }
}

} // namespace
} // namespace fusor::test
