// MiniGPT's training step as clusters: the fusions of TARGETS, and nothing that only copies or transposes.
#include "frontend/nn/modules.h"
#include "passes/pipeline.h"
#include "tests/passes/models.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

namespace fusor::test {
namespace {

struct Fused {
  std::unique_ptr<ir::Module> module;
  std::map<std::string, unsigned> count; // "kind name" -> how many
  unsigned bare = 0;                     // ops outside fusions but for views, generators and the return
};

enum class Fp8 { no, library };

Fused trainStep(int64_t layers, ir::DType precision, Fp8 fp8 = Fp8::no) {
  Fused fused;
  fused.module = nn::gptForward({.layers = layers});
  passes::PassOptions options;
  options.precision = precision;
  if (fp8 == Fp8::library) {
    options.fp8.emplace();
    options.target.hasFp8 = options.target.hasCublasLt = true;
    options.target.kind = ir::DeviceKind::cuda, options.target.tier = ir::ArchTier::sm90a;
    options.disabledRules.insert("fp8-split"); // what it adds at the peak: fp8_split_test.cpp
  }
  passes::PassContext context(options);
  EXPECT_SUCCESS(passes::runPipeline(*fused.module, passes::PipelineKind::train, context));
  for (const ir::Op &op : fused.module->function("train_step")->block().ops()) {
    bool isFree = op.def().isTerminator || op.operands().empty() || op.def().lowering == ir::Lowering::view;
    if (op.is("fusion"))
      ++fused.count[op.attr<std::string>("kind") + " " + op.attr<std::string>("name")];
    else
      fused.bare += !isFree;
  }
  return fused;
}

// True for a cluster that moves or casts elements and computes nothing.
bool onlyMoves(const ir::Op &fusion) {
  return llvm::all_of(fusion.body()->ops(), [](const ir::Op &op) {
    return op.def().isTerminator || op.is("cast") || op.is("fp8_cast") || op.def().lowering == ir::Lowering::indexMap ||
           op.def().lowering == ir::Lowering::view;
  });
}

TEST(MiniGptFusions, AreTheExpectedOnes) {
  Fused fused = trainStep(2, ir::DType::bf16);
  std::map<std::string, unsigned> expected = {
      {"row embedding_add_layer_norm", 1}, // embeddings and the first norm
      {"row layer_norm", 4},               // the other norms
      {"contraction linear", 3},           // qkv and head, bias in the epilogue
      {"attention split_attention", 2},    // packed QKV read in place
      {"contraction linear_add", 4},       // projections with bias and residual
      {"contraction linear_gelu", 2},      // fc1: bias, GELU, pre-activation kept
      {"row cross_entropy", 1},
      {"pointwise cross_entropy_grad", 1},
      {"contraction linear_input_grad", 7},
      {"contraction linear_input_grad_gelu_gelu_grad_sum", 2}, // dGELU and the bias gradient, GELU again for fc2
      {"contraction linear_weight_grad", 9},
      // The norm again for the weight gradients behind it, and
      {"row normalize_layer_norm_grad_layer_norm_param_grad_sum", 1},     // final norm, and fc2's bias gradient
      {"row normalize_layer_norm_grad_layer_norm_param_grad_add_sum", 3}, // its backward, residual, bias gradient below
      {"row normalize_layer_norm_grad_layer_norm_param_grad_add", 1},
      {"attention split_attention_grad_concat", 2}, // packed dQKV written in place
      {"column sum", 3},                            // bias gradients of qkv, and the position gradient
      {"scatter embedding_grad", 1},
      {"multi_tensor adamw", 2}, // parameters with and without a bf16 copy
      {"pointwise add", 1},      // the step counter
  };
  EXPECT_EQ(fused.count, expected);
  EXPECT_EQ(fused.bare, 0u);
}

// But for one: attention's result waits in bf16 for its gradient anyway, and is quantised again for proj's weight
// gradient, transposed, instead of waiting in FP8 too (passes/recompute).
TEST(MiniGptFusions, NoKernelOnlyCopiesOrTransposes) {
  for (auto [precision, fp8] :
       {std::pair{ir::DType::f32, Fp8::no}, {ir::DType::bf16, Fp8::no}, {ir::DType::bf16, Fp8::library}}) {
    Fused fused = trainStep(2, precision, fp8);
    unsigned again = 0;
    for (const ir::Op &op : fused.module->function("train_step")->block().ops()) {
      if (!op.is("fusion") || !onlyMoves(op)) continue;
      EXPECT_EQ(op.attr<std::string>("name"), "fp8_cast_transpose") << ir::name(precision).str();
      EXPECT_TRUE(op.operand(0u).name().endswith(".attention")) << op.operand(0u).name().str();
      ++again;
    }
    EXPECT_EQ(again, fp8 == Fp8::library ? 2u : 0u);
  }
}

unsigned total(const Fused &fused) {
  unsigned sum = 0;
  for (const auto &entry : fused.count) sum += entry.second;
  return sum;
}

TEST(MiniGptFusions, EveryLayerAddsTheSameNineteenKernels) {
  unsigned two = total(trainStep(2, ir::DType::bf16)), three = total(trainStep(3, ir::DType::bf16)),
           four = total(trainStep(4, ir::DType::bf16));
  EXPECT_EQ(three - two, four - three);
  EXPECT_EQ(three - two, 19u);
}

// Who quantises for a library's products stores both orders: none of a layer's twelve transposed copies is a kernel's
// only result. Those of its four weights come with AdamW, whose kernel all layers share.
TEST(MiniGptFusions, WhoQuantisesTransposes) {
  Fused two = trainStep(2, ir::DType::bf16, Fp8::library), three = trainStep(3, ir::DType::bf16, Fp8::library);
  EXPECT_EQ(total(three) - total(two), 21u);
  EXPECT_EQ(two.bare, 0u);
  unsigned transposes = 0;
  for (const ir::Op &op : two.module->function("train_step")->block().ops()) {
    if (!op.is("fusion")) continue;
    auto count = [&](llvm::StringRef name) {
      return llvm::count_if(op.body()->ops(), [&](const ir::Op &inner) { return inner.is(name); });
    };
    transposes += count("transpose");
    EXPECT_LE(count("transpose"), count("fp8_cast")) << op.attr<std::string>("name");
  }
  EXPECT_EQ(transposes, 2u * 12u);
}

} // namespace
} // namespace fusor::test
