// Layers and gpt: names and shapes of their parameters, and options as the IR they make.
#include "frontend/builder/graph_state.h"
#include "frontend/nn/modules.h"
#include "runtime/checkpoint/safetensors.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

namespace {
using namespace fusor;
using namespace fusor::nn;

std::string built(const Builder &b) {
  auto module = frontend::finish(b);
  return module ? (*module)->str() : llvm::toString(module.takeError());
}

/// The ops of @NAME in order, by name.
std::vector<std::string> opNames(const ir::Module &m, llvm::StringRef name = "forward") {
  std::vector<std::string> names;
  for (const ir::Op &op : m.function(name)->block().ops()) names.push_back(op.name().str());
  return names;
}

TEST(Gpt, ParametersAreThoseOfTheReference) {
  std::string path = FUSOR_SOURCE_DIR "/../shared/reference/minigpt_small/init.safetensors";
  if (!llvm::sys::fs::exists(path)) GTEST_SKIP() << "shared/reference is not here";
  auto file = runtime::SafetensorsFile::open(path);
  ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
  auto module = gptForward(*configuration("small"));
  EXPECT_EQ(module->persistents().size(), file->tensors().size());
  for (const auto &tensor : file->tensors()) {
    const ir::Persistent *p = module->persistent(tensor.info.name);
    ASSERT_NE(p, nullptr) << tensor.info.name;
    ir::Shape shape(tensor.info.shape.begin(), tensor.info.shape.end());
    EXPECT_EQ(p->type.str(), (ir::TensorType{tensor.info.dtype, shape}.str())) << tensor.info.name;
  }
}

TEST(Gpt, InitialValuesAreThoseOfTheContract) {
  auto module = gptForward(*configuration("tiny"));
  auto init = [&](const char *name) { return module->persistent(name)->init; };
  using Kind = ir::Initializer::Kind;
  for (const char *name : {"emb.weight", "pos.weight", "head.weight", "blocks.1.qkv.weight", "blocks.0.fc2.weight"})
    EXPECT_EQ(init(name), (ir::Initializer{Kind::normal, 0.02})) << name;
  EXPECT_EQ(init("blocks.0.qkv.bias"), ir::Initializer{});
  EXPECT_EQ(init("ln_f.weight"), (ir::Initializer{Kind::constant, 1}));
  EXPECT_EQ(init("ln_f.bias"), ir::Initializer{});
}

TEST(Gpt, ForwardIsPreNormWithTanhGelu) {
  auto module = gptForward({.layers = 1});
  EXPECT_EQ(opNames(*module),
            (std::vector<std::string>{"embedding", "add", "layer_norm", "linear", "split", "attention", "linear", "add",
                                      "layer_norm", "linear", "gelu", "linear", "add", "layer_norm", "linear",
                                      "cross_entropy", "return"}));
  EXPECT_NE(module->str().find("attention %blocks.0.q, %blocks.0.k, %blocks.0.v {causal = true, heads = 2}"),
            std::string::npos);
}

TEST(Gpt, EveryNamedConfigurationBuilds) {
  for (const NamedConfig &c : configurations()) EXPECT_FALSE(bool(check(c.config))) << c.name;
  EXPECT_EQ(gptForward(*configuration("gpt2"))->persistent("emb.weight")->type.str(), "f32[50304, 768]");
  EXPECT_FALSE(configuration("tini").has_value());
}

TEST(Gpt, DecodingReadsAndUpdatesTheCache) {
  auto module = gptDecoding({.layers = 2});
  EXPECT_EQ(module->function("forward"), nullptr);
  EXPECT_EQ(module->persistent("cache.1.v")->type.str(), "f32[1, 32, 64]");
  std::string text = module->str();
  EXPECT_NE(text.find("func @decode(%tokens: i32[1, T], %position: i32[]) -> f32[1, 96]"), std::string::npos) << text;
  EXPECT_NE(text.find("cache_write @cache.0.k, %blocks.0.k, %position"), std::string::npos);
  EXPECT_NE(text.find("return %logits, @cache.0.k = %cache.0.k, @cache.0.v = %cache.0.v"), std::string::npos);
}

TEST(Gpt, ConfigurationsThatMakeNoModelAreRefused) {
  auto says = [](const GptConfig &c) { return llvm::toString(check(c)); };
  EXPECT_NE(says({.width = 65}).find("width 65 must be a multiple of heads = 2"), std::string::npos);
  EXPECT_NE(says({.layers = 0}).find("layers must be at least 1, is 0"), std::string::npos);
  EXPECT_NE(says({.kvHeads = 3}).find("kvHeads = 3 must divide heads = 2"), std::string::npos);
  Builder b("m");
  gpt(b, b.input("tokens", i32, {4, 40}), {});
  EXPECT_NE(b.error().text().find("gpt has context 32, tokens are i32[4, 40]"), std::string::npos);
}

TEST(Gpt, OptionsReachTheIr) {
  Builder b("m");
  Value tokens = b.input("tokens", i32, {4, 16}); // shorter than the context
  b.output(gpt(b, tokens,
               {.heads = 4,
                .layers = 1,
                .kvHeads = 2,
                .window = 8,
                .activation = Activation::swiglu,
                .rmsNorm = true,
                .bias = false,
                .zeroCentredGamma = true,
                .rope = true,
                .dropout = 0.1}));
  std::string text = built(b);
  for (const char *expected :
       {"@blocks.0.qkv.weight : f32[128, 64]", "@blocks.0.fc1.weight : f32[512, 64]", "rms_norm ", "rope ",
        "{causal = true, heads = 4, kv_heads = 2, window = 8}", "{sizes = [256, 256]}", "silu ", "dropout ",
        "@blocks.0.ln1.weight : f32[64]\n", "@dropout.step = "})
    EXPECT_NE(text.find(expected), std::string::npos) << expected << "\n" << text;
  EXPECT_EQ(text.find(".bias"), std::string::npos);
  EXPECT_EQ(text.find("pos.weight"), std::string::npos);
}

TEST(Layers, PostNormPutsTheNormBehindTheSum) {
  Builder b("m");
  TransformerLayer layer(b, "l", {.width = 8, .ffn = 16, .attention = {.heads = 2}, .order = ResidualOrder::postNorm});
  b.output(layer(b.input("x", f32, {2, 4, 8})));
  auto module = frontend::finish(b);
  ASSERT_TRUE(bool(module));
  EXPECT_EQ(opNames(**module), (std::vector<std::string>{"linear", "split", "attention", "linear", "add", "layer_norm",
                                                         "linear", "gelu", "linear", "add", "layer_norm", "return"}));
}

TEST(Layers, EveryActivationBuilds) {
  for (int a = 0; a <= static_cast<int>(Activation::swiglu); ++a) {
    Builder b("m");
    auto activation = static_cast<Activation>(a);
    Value y = activate(b.input("x", f32, {3, 8}), activation);
    EXPECT_EQ(y.type(), isGated(activation) ? "f32[3, 4]" : "f32[3, 8]") << a;
    EXPECT_FALSE(b.error()) << b.error().text();
  }
}

TEST(Layers, AnErrorInsideALayerNamesTheCall) {
  Builder b("m");
  Linear fc(b, "fc", 16, 8);
  fc(b.input("x", f32, {4, 15}));
  unsigned line = __LINE__ - 1;
  EXPECT_EQ(b.error().text().find(std::string(__FILE__) + ":" + std::to_string(line) + ": error: 'linear'"), 0u)
      << b.error().text();
}

} // namespace
