// Models that others wrote (../shared/onnx, where it is there): reference outputs, what is lifted, that lifting changes
// no result, cases after reported bugs of other importers, graphs whose weights are absent.
#include "passes/pipeline.h"
#include "tests/onnx/model_folder.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"
#include <cmath>

namespace fusor::tests {
namespace {

using frontend::HostTensor;

#define NEED_SHARED(variable, name)                                                                                    \
  std::string variable = sharedOnnx(name);                                                                             \
  if (variable.empty()) GTEST_SKIP() << "../shared/onnx/" << name << " is not there"

std::string contentOf(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

/// `found` against output_<i>_*.npy of `set`.
void expectReference(const std::vector<HostTensor> &found, const std::string &set, double atol, double rtol) {
  for (unsigned i = 0; i < found.size(); ++i) {
    std::string path;
    std::error_code error;
    const std::string stem = "output_" + std::to_string(i) + "_";
    for (llvm::sys::fs::directory_iterator it(set, error), end; !error && it != end; it.increment(error))
      if (llvm::sys::path::filename(it->path()).startswith(stem)) path = it->path();
    auto expected = frontend::readTensorFile(path, found[i].dtype);
    ASSERT_TRUE(static_cast<bool>(expected)) << set << ": " << stem << llvm::toString(expected.takeError());
    ASSERT_EQ(found[i].shape, expected->shape) << set << " output " << i;
    const frontend::Comparison c = frontend::compare(found[i], *expected, atol, rtol);
    EXPECT_TRUE(c.agrees) << set << " output " << i << ": element " << c.first << " is " << c.found << ", expected "
                          << c.expected;
  }
}

struct Lifted {
  const char *model;
  std::map<std::string, unsigned> ops; // those that must be there, and how many
};

const Lifted kLifted[] = {
    {"bert_tiny", {{"attention", 1}, {"gelu", 1}, {"layer_norm", 3}, {"linear", 7}, {"matmul", 0}, {"softmax", 0}}},
    {"bert_dummy_relu", {{"attention", 2}, {"layer_norm", 4}, {"linear", 8}, {"matmul", 0}, {"softmax", 0}}},
    {"bert_mha_fused", {{"attention", 1}, {"layer_norm", 2}, {"linear", 4}, {"matmul", 0}, {"softmax", 0}}},
    {"distilbert_tiny",
     {{"attention", 2}, {"gelu", 2}, {"layer_norm", 5}, {"linear", 14}, {"matmul", 0}, {"softmax", 0}}},
    {"gpt2_past_12layer",
     {{"attention", 12}, {"gelu", 12}, {"layer_norm", 25}, {"linear", 48}, {"matmul", 0}, {"softmax", 0}}},
    {"gpt2_past_mask_one_layer",
     {{"attention", 1}, {"gelu", 1}, {"layer_norm", 2}, {"linear", 4}, {"matmul", 0}, {"softmax", 0}}},
    {"gpt2_tiny_fused_fp32",
     {{"attention", 5}, {"gelu", 5}, {"layer_norm", 11}, {"linear", 21}, {"matmul", 0}, {"softmax", 0}}},
    // matmul: positions times frequencies of the rotary embedding
    {"llama_tiny_dynamic",
     {{"attention", 1}, {"rms_norm", 3}, {"rotary", 2}, {"silu", 1}, {"linear", 7}, {"matmul", 1}, {"softmax", 0}}},
    {"whisper_decoder_with_past", {{"attention", 2}, {"gelu", 1}, {"layer_norm", 3}, {"linear", 8}, {"matmul", 0}}},
    {"phi4v_vision_attention", {{"attention", 1}, {"layer_norm", 2}, {"linear", 2}, {"matmul", 0}, {"softmax", 0}}},
    {"gpt2_megatron", {{"attention", 0}, {"gelu", 1}, {"layer_norm", 3}, {"linear", 5}}}, // scores times a mask
};

TEST(RealModels, AreLifted) {
  NEED_SHARED(real, "real");
  for (const Lifted &wanted : kLifted) {
    auto imported = onnx::importModel(real + "/" + wanted.model + "/model.onnx");
    ASSERT_TRUE(static_cast<bool>(imported)) << wanted.model << ": " << llvm::toString(imported.takeError());
    auto found = liftedOps(*imported->module);
    for (const auto &[op, count] : wanted.ops) EXPECT_EQ(found[op], count) << wanted.model << ": " << op;
  }
}

TEST(RealModels, Gpt2AttentionIsCausal) {
  NEED_SHARED(real, "real");
  auto imported = onnx::importModel(real + "/gpt2_past_12layer/model.onnx");
  ASSERT_TRUE(static_cast<bool>(imported));
  const passes::PassOptions options;
  passes::PassContext context(options);
  ASSERT_FALSE(passes::runPasses(*imported->module, {std::string("simplify"), "lift"}, context));
  for (const ir::Op &op : imported->module->function("forward")->block().ops())
    if (op.is("attention")) {
      EXPECT_TRUE(op.attr<bool>("causal") && !op.site().has("hidden"));
    }
  ASSERT_FALSE(imported->warnings.empty());
  EXPECT_NE(imported->warnings[0].find("is defined twice"), std::string::npos) << imported->warnings[0];
}

// The gate of SwiGLU is in the epilogue of the product beside it.
TEST(RealModels, LlamaGateIsFused) {
  NEED_SHARED(real, "real");
  auto imported = onnx::importModel(real + "/llama_tiny_dynamic/model.onnx");
  ASSERT_TRUE(static_cast<bool>(imported));
  const passes::PassOptions options;
  passes::PassContext context(options);
  ASSERT_FALSE(passes::runPipeline(*imported->module, passes::PipelineKind::infer, context));
  EXPECT_NE(imported->module->str().find("fusion @linear_silu_mul("), std::string::npos) << imported->module->str();
}

// Every set of every model: the reference within the tolerance of its folder, and the same in small ops within 1e-5 of
// the largest element.
TEST(RealModels, ReferenceAndSmallOps) {
  NEED_SHARED(real, "real");
  unsigned sets = 0;
  for (const std::string &model : foldersIn(real))
    for (const std::string &set : foldersIn(model, "set")) {
      SCOPED_TRACE(set);
      auto lifted = runModelFolder(model, set);
      ASSERT_TRUE(static_cast<bool>(lifted)) << llvm::toString(lifted.takeError());
      const bool exact = llvm::StringRef(contentOf(model + "/tolerance.txt")).trim() == "0 0";
      expectReference(*lifted, set, exact ? 0 : 1e-4, exact ? 0 : 1e-3);
      passes::PassOptions options;
      options.disabledRules.insert("lift");
      auto small = runModelFolder(model, set, options);
      ASSERT_TRUE(static_cast<bool>(small)) << llvm::toString(small.takeError());
      for (unsigned i = 0; i < small->size(); ++i) {
        double largest = 0;
        if (ir::isFloat((*small)[i].dtype))
          for (int64_t e = 0; e < (*small)[i].elements(); ++e)
            largest = std::max(largest, std::abs(ir::loadElement((*small)[i].dtype, (*small)[i].bytes.data(), e)));
        const frontend::Comparison c = frontend::compare((*lifted)[i], (*small)[i], 1e-5 * largest, 0);
        EXPECT_TRUE(c.agrees) << "output " << i << ": " << c.worst << " apart, the largest element is " << largest;
      }
      ++sets;
    }
  EXPECT_GE(sets, 29u);
}

// Both texts are words that an error of ours has.
TEST(BugCases, AsTheirManifestSays) {
  NEED_SHARED(bugs, "bugs");
  unsigned cases = 0;
  for (const std::string &folder : foldersIn(bugs)) {
    ++cases;
    const std::string name = llvm::sys::path::filename(folder).str();
    SCOPED_TRACE(name);
    const bool mustFail = llvm::sys::fs::exists(folder + "/EXPECT_ERROR.txt"),
               mayFail = llvm::sys::fs::exists(folder + "/EXPECT_ERROR_OR_OUTPUT.txt");
    std::vector<std::string> sets = foldersIn(folder, "set");
    if (sets.empty()) {
      auto imported = onnx::importModel(folder + "/model.onnx");
      EXPECT_FALSE(static_cast<bool>(imported)) << "there are no inputs: the import should have failed";
      if (!imported) llvm::consumeError(imported.takeError());
    }
    for (const std::string &set : sets) {
      auto found = runModelFolder(folder, set);
      if (!found) {
        const std::string text = llvm::toString(found.takeError());
        EXPECT_TRUE(mustFail || mayFail) << text;
        EXPECT_GT(text.size(), 20u);
        if (name == "O15d_gather_index_below_range_runtime") {
          EXPECT_NE(text.find("index -4"), std::string::npos) << text;
          EXPECT_NE(text.find("a dim of 3"), std::string::npos) << text;
        }
        continue;
      }
      EXPECT_FALSE(mustFail) << "it ran";
      double atol = 1e-5, rtol = 1e-4;
      std::string tolerance = contentOf(folder + "/tolerance.txt");
      if (!tolerance.empty()) {
        auto [a, r] = llvm::StringRef(tolerance).trim().split(' ');
        EXPECT_FALSE(a.trim().getAsDouble(atol) || r.trim().getAsDouble(rtol));
      }
      if (!mustFail) expectReference(*found, set, atol, rtol);
    }
  }
  EXPECT_EQ(cases, 53u);
}

// Outputs of onnxruntime 1.32.0, without its optimisations.
TEST(Examples, KvCacheModel) {
  const std::string model = FUSOR_SOURCE_DIR "/examples/kv_cache";
  auto found = runModelFolder(model, model + "/set0");
  ASSERT_TRUE(static_cast<bool>(found)) << llvm::toString(found.takeError());
  ASSERT_EQ(found->size(), 5u);
  expectReference(*found, model + "/set0", 1e-5, 1e-4);
}

TEST(GraphOnly, NamesTheMissingFileAndATensor) {
  NEED_SHARED(folder, "graph_only");
  for (auto [model, file, tensor] :
       {std::make_tuple("phi3_decoder", "model_microsoft_Phi-3_5-mini-instruct-custom-default-d1rt1.onnx.data",
                        "p_model_layers_0_self_attn_qkv_proj_weight"),
        {"bert_12layer_fp16_training", "model-b_model_albert_embeddings_position_ids.weight",
         "p_model_albert_embeddings_word_embeddings_weight"}}) {
    auto imported = onnx::importModel(folder + "/" + model + "/model.onnx");
    ASSERT_FALSE(static_cast<bool>(imported)) << model;
    const std::string text = llvm::toString(imported.takeError());
    EXPECT_NE(text.find(file), std::string::npos) << text;
    EXPECT_NE(text.find(tensor), std::string::npos) << text;
  }
}

} // namespace
} // namespace fusor::tests
