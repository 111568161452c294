// fusor demo: train a small MiniGPT on the machine at hand, in bf16 and beside it in FP8, generate with both, and say
// where to look at the fused kernels.
#include "frontend/api/compile_module.h"
#include "frontend/api/generator.h"
#include "frontend/cli/console.h"
#include "frontend/cli/load_module.h"
#include "frontend/cli/train.h"
#include "frontend/cli/verbs.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

namespace fusor::frontend::cli {
namespace {

std::string words(llvm::ArrayRef<int32_t> tokens) {
  return llvm::join(llvm::map_range(tokens, [](int32_t t) { return std::to_string(t); }), " ");
}

llvm::Error showFusions(Console &console, llvm::StringRef dump) {
  console.say("\nThe fused step is in " + dump +
              ": kernels/ (the CUDA text of each), modules/ (after each pass), steps.json (what ran, and its times), "
              "fusions.json (what was fused, what not, and why).\nLook further with\n"
              "  fusor explain config:small --precision bf16     what was fused, and what was not, and why\n"
              "  fusor opt config:small --print-after all        the module after each pass");
  return llvm::Error::success();
}

llvm::Expected<bool> runDemo(Console &console, const CommonOptions &common) {
  llvm::SmallString<128> folder;
  if (std::error_code code = llvm::sys::fs::createUniqueDirectory("fusor-demo", folder))
    return failure(ErrorKind::output, "cannot make a temporary folder: {0}", code.message());
  std::string checkpoint = (folder + "/checkpoint").str(), dump = (folder + "/dump").str();
  if (!common.dump.empty()) dump = common.dump;

  TrainSettings s;
  s.config = *nn::configuration("small");
  s.lr = 1e-3, s.steps = 200;
  s.seed = common.seed, s.saveFolder = checkpoint;
  s.device = deviceSettings(common), s.device.dumpDir = dump;
  console.say(
      "MiniGPT: 2 layers of width 128, 64 tokens of context, trained in bf16 on sequences that count up by 1 to "
      "6 modulo 96");
  Losses bf16, fp8;
  auto summary = trainAndReport(console, s, &bf16);
  if (!summary) return summary.takeError();
  if (summary->interrupted) return true;

  TrainSettings f = s;
  f.fp8.emplace(), f.saveFolder = checkpoint + "-fp8", f.device.dumpDir.clear();
  fp8.bf16 = bf16.own;
  console.say("\nThe same from the same start on the same data, linear layers in FP8 (Transformer Engine's delayed "
              "scaling)");
  auto inFp8 = trainAndReport(console, f, &fp8);
  if (!inFp8) return inFp8.takeError();
  if (inFp8->interrupted) return true;
  if (summary->finalLoss && inFp8->finalLoss)
    console.say(llvm::formatv("\nafter {0} steps: loss {1:f4} in bf16, {2:f4} in FP8", summary->lastStep,
                              *summary->finalLoss, *inFp8->finalLoss)
                    .str());

  GenerateSettings g;
  g.prompt = {10, 13, 16, 19, 22, 25, 28, 31}, g.newTokens = 16;
  g.device = deviceSettings(common), g.device.dumpDir.clear();
  console.say("\nprompt             " + words(g.prompt));
  for (bool isFp8 : {false, true}) {
    g.checkpoint = isFp8 ? f.saveFolder : s.saveFolder, g.fp8 = isFp8;
    auto made = generate(g);
    if (!made) return made.takeError();
    console.object({{"prompt", llvm::json::Array(made->prompt)},
                    {"tokens", llvm::json::Array(made->tokens)},
                    {"precision", isFp8 ? "fp8" : "bf16"}});
    console.say((isFp8 ? "generated in FP8   " : "generated in bf16  ") + words(made->tokens));
  }
  if (auto error = showFusions(console, dump)) return error;
  return false;
}

} // namespace

int demo(const CommonOptions &common) {
  Console console(common);
  auto interrupted = runDemo(console, common);
  if (!interrupted) return console.fail(interrupted.takeError());
  return *interrupted ? static_cast<int>(ErrorKind::interrupted) : 0;
}

} // namespace fusor::frontend::cli
