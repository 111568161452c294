// fusor generate.
#include "frontend/api/generator.h"
#include "frontend/cli/console.h"
#include "frontend/cli/load_module.h"
#include "frontend/cli/verbs.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace fusor::frontend::cli {
namespace {

llvm::Expected<std::vector<int32_t>> parseTokens(llvm::StringRef text) {
  std::vector<int32_t> tokens;
  llvm::SmallVector<llvm::StringRef, 16> words;
  llvm::SplitString(text, words, " ,\t\n");
  for (llvm::StringRef word : words)
    if (word.getAsInteger(10, tokens.emplace_back()))
      return failure(ErrorKind::usage, "--prompt needs token ids like \"3 5 7\", found '{0}'", word);
  return tokens;
}

std::string asText(llvm::ArrayRef<int32_t> tokens) {
  std::string text;
  for (int32_t token : tokens) text += static_cast<char>(token);
  return text;
}

llvm::Error generateTokens(Console &console, const CommonOptions &common, const GenerateOptions &o) {
  if (!o.save.empty() && o.weights != "fp8")
    return failure(ErrorKind::usage, "--save writes weights in FP8: it needs --weights fp8");
  GenerateSettings s{.checkpoint = o.checkpoint,
                     .text = o.text,
                     .newTokens = o.newTokens,
                     .temperature = o.temperature,
                     .topK = o.topK,
                     .seed = common.seed,
                     .keepsCache = o.keepsCache,
                     .fp8Weights = o.weights == "fp8",
                     .saveFolder = o.save,
                     .device = deviceSettings(common)};
  auto precision = parsePrecision(o.precision);
  if (!precision) return precision.takeError();
  s.precision = precision->dtype, s.fp8 = precision->fp8;
  auto prompt = parseTokens(o.prompt);
  if (!prompt) return prompt.takeError();
  s.prompt = std::move(*prompt);

  auto made = generate(s);
  if (!made) return made.takeError();
  for (const std::string &fallback : made->fallbacks) console.warning("fallback: " + fallback);
  if (made->contextFull)
    console.warning(
        llvm::formatv("stopped after {0} new tokens: the model's context is full", made->tokens.size()).str());
  llvm::json::Object object{{"prompt", llvm::json::Array(made->prompt)},
                            {"tokens", llvm::json::Array(made->tokens)},
                            {"prompt_ms", made->promptMs},
                            {"ms_per_token", made->msPerToken},
                            {"tokens_per_s", made->msPerToken > 0 ? 1000 / made->msPerToken : 0},
                            {"kv_cache", o.keepsCache},
                            {"plans", made->plans},
                            {"compiled", made->compiled},
                            {"kernels", made->kernels},
                            {"launches_per_token", made->launches},
                            {"peak_bytes", made->peakBytes},
                            {"device", made->device},
                            {"precision", o.precision}};
  if (s.fp8Weights) {
    object["weights"] = "fp8";
    object["weight_bytes"] = made->weightBytes.fp8, object["weight_bytes_bf16"] = made->weightBytes.bf16;
  }
  if (made->isText) object["text"] = llvm::json::fixUTF8(asText(made->tokens));
  console.object(std::move(object));
  if (s.fp8Weights)
    console.say(llvm::formatv("weights of linear layers: {0} in FP8, {1:f2} of the {2} in bf16",
                              bytesText(made->weightBytes.fp8),
                              static_cast<double>(made->weightBytes.fp8) /
                                  static_cast<double>(std::max<int64_t>(made->weightBytes.bf16, 1)),
                              bytesText(made->weightBytes.bf16))
                    .str());
  if (!o.save.empty()) console.say("checkpoint with these weights in " + o.save);
  if (made->prompt.empty()) return llvm::Error::success();
  if (made->msPerToken > 0)
    console.say(llvm::formatv("{0:f1} tokens/s {1} a KV cache on {2}, {3:f1} ms for the prompt",
                              1000 / made->msPerToken, o.keepsCache ? "with" : "without", made->device, made->promptMs)
                    .str());
  if (!o.text.empty())
    console.result(o.text + asText(made->tokens));
  else
    console.result(llvm::join(llvm::map_range(made->tokens, [](int32_t t) { return std::to_string(t); }), " "));
  return llvm::Error::success();
}

} // namespace

int generate(const CommonOptions &common, const GenerateOptions &options) {
  Console console(common);
  return console.fail(generateTokens(console, common, options));
}

} // namespace fusor::frontend::cli
