#include "frontend/nn/modules.h"
#include "frontend/builder/graph_state.h"
#include "ir/graph/bug.h"
#include <cstring>

namespace fusor::nn {

llvm::ArrayRef<NamedConfig> configurations() {
  static const NamedConfig all[] = {
      {"tiny", {.vocab = 96, .width = 64, .heads = 2, .layers = 2, .ffn = 256, .context = 32}, "tests"},
      {"small",
       {.vocab = 96, .width = 128, .heads = 4, .layers = 2, .ffn = 512, .context = 64},
       "demo, reference traces"},
      {"seed", {.vocab = 96, .width = 768, .heads = 12, .layers = 4, .ffn = 3072, .context = 256}, "MiniGPT"},
      {"scaled",
       {.vocab = 96, .width = 2048, .heads = 16, .layers = 12, .ffn = 8192, .context = 256},
       "where FP8 pays"},
      {"gpt2",
       {.vocab = 50304, .width = 768, .heads = 12, .layers = 12, .ffn = 3072, .context = 1024},
       "GPT-2 124M shape, untied head"},
  };
  return all;
}

std::optional<GptConfig> configuration(llvm::StringRef name) {
  for (const NamedConfig &c : configurations())
    if (name == c.name) return c.config;
  return std::nullopt;
}

namespace {

Builder forwardBuilder(const GptConfig &c, llvm::StringRef name, int64_t maxBatch) {
  Builder b(name.str());
  Value tokens = b.input("tokens", i32, {dim("B", 1, maxBatch), c.context});
  Value targets = b.input("targets", i32, {dim("B"), c.context});
  b.output(crossEntropy(gpt(b, tokens, c), targets), "loss");
  return b;
}

std::unique_ptr<ir::Module> finished(const Builder &b) {
  auto module = frontend::finish(b);
  if (!module)
    FUSOR_BUG("a configuration that check() accepts makes no module: {0}", llvm::toString(module.takeError()));
  return std::move(*module);
}

} // namespace

std::unique_ptr<ir::Module> gptForward(const GptConfig &c, llvm::StringRef name, int64_t maxBatch) {
  return finished(forwardBuilder(c, name, maxBatch));
}

std::unique_ptr<ir::Module> gptDecoding(const GptConfig &c, llvm::StringRef name, int64_t batch) {
  Builder b(name.str());
  b.function("decode");
  Value tokens = b.input("tokens", i32, {batch, dim("T", 1, c.context)});
  Value position = b.input("position", i32, {});
  b.output(gptDecode(b, tokens, position, c), "logits");
  auto module = finished(b);
  module->eraseFunction("forward");
  return module;
}

std::unique_ptr<ir::Module> gptDecodingAll(const GptConfig &c, llvm::StringRef name) {
  Builder b(name.str());
  b.function("decode");
  Value tokens = b.input("tokens", i32, {1, c.context}), place = b.input("place", i32, {});
  b.output(gptAt(b, tokens, place, c), "logits");
  auto module = finished(b);
  module->eraseFunction("forward");
  return module;
}

llvm::Error check(const GptConfig &config) {
  auto module = frontend::finish(forwardBuilder(config, "minigpt", 1));
  if (module) return llvm::Error::success();
  // The place is one of this file, which says nothing to who wrote the configuration.
  std::string errors = llvm::toString(module.takeError());
  llvm::StringRef first = llvm::StringRef(errors).split('\n').first;
  return llvm::createStringError(llvm::inconvertibleErrorCode(), "%s",
                                 first.substr(first.find("error: ") + strlen("error: ")).str().c_str());
}

} // namespace fusor::nn
