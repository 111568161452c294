#include "frontend/api/generator.h"
#include "frontend/api/checkpoint.h"
#include "frontend/api/compile_module.h"
#include "frontend/api/config_file.h"
#include "frontend/api/errors.h"
#include "frontend/api/fp8_state.h"
#include "frontend/bench/median.h"
#include "frontend/dump/dump.h"
#include "ir/ops/counter_rng.h"
#include "llvm/ADT/STLExtras.h"
#include <chrono>
#include <cmath>
#include <numeric>

namespace fusor::frontend {
namespace {

/// The token that `settings` pick from logits; draw number `step` of the seed.
int32_t pick(llvm::ArrayRef<float> logits, const GenerateSettings &s, int64_t step) {
  auto best = static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  if (s.temperature <= 0) return best;
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::stable_sort(order, [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  if (s.topK > 0 && static_cast<size_t>(s.topK) < order.size()) order.resize(s.topK);
  std::vector<double> weights;
  double sum = 0;
  for (int32_t token : order) sum += weights.emplace_back(std::exp((logits[token] - logits[best]) / s.temperature));
  constexpr uint64_t kStream = 0x70c; // of draws for tokens
  double point = ir::rngUniform(ir::rngKey(s.seed, kStream), static_cast<uint64_t>(step)) * sum;
  for (size_t i = 0; i < order.size(); ++i)
    if ((point -= weights[i]) < 0) return order[i];
  return order.back();
}

llvm::Expected<std::vector<int32_t>> promptTokens(const GenerateSettings &s, const nn::GptConfig &config) {
  std::vector<int32_t> prompt = s.prompt;
  if (!s.text.empty()) {
    if (config.vocab != 256)
      return inputError(
          "--text needs a model of bytes (vocab 256), this one has vocab {0}: use --prompt with token ids",
          config.vocab);
    for (unsigned char c : s.text) prompt.push_back(c);
  }
  if (prompt.empty()) return inputError("the prompt is empty: give --prompt \"3 5 7\" or --text");
  for (int32_t token : prompt)
    if (token < 0 || token >= config.vocab)
      return inputError("the prompt has token {0}, the model knows 0 to {1}", token, config.vocab - 1);
  if (static_cast<int64_t>(prompt.size()) > config.context)
    return inputError("the prompt has {0} tokens, the model's context is {1}", prompt.size(), config.context);
  return prompt;
}

} // namespace

llvm::Expected<Generated> generate(const GenerateSettings &s, llvm::function_ref<void(int32_t)> onToken) {
  auto info = readCheckpointInfo(s.checkpoint);
  if (!info) return info.takeError();
  const llvm::json::Object *configJson = info->getObject("config");
  if (!configJson)
    return inputError("'{0}': checkpoint.json has no \"config\": it was not written by `fusor train`", s.checkpoint);
  auto config = configFromJson(*configJson, s.checkpoint + "/checkpoint.json, \"config\"");
  if (!config) return config.takeError();
  const bool generates = s.saveFolder.empty() || !s.prompt.empty() || !s.text.empty();
  llvm::Expected<std::vector<int32_t>> prompt = std::vector<int32_t>();
  if (generates) prompt = promptTokens(s, *config);
  if (!prompt) return prompt.takeError();
  auto device = chooseDevice(s.device.device, s.device.tier);
  if (!device) return device.takeError();
  DeviceSettings settings = s.device;
  if (!settings.dumpDir.empty() && (!generates || s.newTokens < 1))
    return failure(ErrorKind::usage, "--dump is of a run: it needs a prompt and --new-tokens of 1 or more");
  auto dump = beginDump(settings);
  if (!dump) return dump.takeError();

  CompileRequest request(settings);
  request.passes.precision = s.precision;
  request.passes.function = "decode";
  request.passes.fp8Weights = s.fp8Weights;
  if (s.fp8) {
    const llvm::json::Object *recipe = info->getObject("recipe"), *fp8 = recipe ? recipe->getObject("fp8") : nullptr;
    if (!fp8)
      return inputError("'{0}' was not trained in FP8, so it has no scales of activations: --precision fp8 needs them, "
                        "--weights fp8 does not",
                        s.checkpoint);
    request.passes.fp8 = fp8FromJson(*fp8);
  }
  auto module = s.keepsCache ? nn::gptDecoding(*config) : nn::gptDecodingAll(*config);
  auto compiled = compileModule(std::move(module), *device, std::move(request));
  if (!compiled) return compiled.takeError();
  runtime::Program &program = *compiled->program;
  if (auto error = program.initialize(0)) return error; // the caches: zeros
  std::vector<std::string> missing;
  if (auto error = loadCheckpoint(program, s.checkpoint, {.fp8 = s.fp8, .states = false}, &missing)) return error;
  if (!missing.empty())
    return inputError("'{0}' has no '{1}' in fp8.safetensors: without its scales, use another --precision than fp8",
                      s.checkpoint, missing.front());
  if (!s.saveFolder.empty()) {
    llvm::json::Object saved = *info;
    if (s.fp8Weights) saved["weights"] = "fp8";
    if (auto error = saveCheckpoint(program, s.saveFolder, std::move(saved), {.states = false})) return error;
  }

  Generated result{.prompt = *prompt, .isText = config->vocab == 256, .device = device->name};
  // With a cache the prompt goes in at once, then token by token; without, all of it in the places it has anyway.
  std::vector<int32_t> given = *prompt;
  if (!s.keepsCache) given.resize(config->context);
  std::vector<float> logits(config->vocab);
  std::vector<double> times;
  auto length = static_cast<int64_t>(prompt->size()); // of the sequence so far
  int32_t position = 0;
  std::vector<int32_t> ran; // the last run's inputs
  int32_t ranAt = 0;
  for (int64_t made = 0; made < s.newTokens && generates; ++made) {
    if (length > config->context) {
      result.contextFull = true;
      break;
    }
    auto start = std::chrono::steady_clock::now();
    if (!s.keepsCache) position = static_cast<int32_t>(length - 1);
    runtime::TensorView tokens{ir::DType::i32, {1, static_cast<int64_t>(given.size())}, given.data()};
    runtime::TensorView at{ir::DType::i32, {}, &position};
    runtime::TensorView out{ir::DType::f32, {1, config->vocab}, logits.data()};
    if (auto error = program.run("decode", {tokens, at}, {out})) return error;
    ran = given, ranAt = position;
    double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (made == 0)
      result.promptMs = ms;
    else
      times.push_back(ms);
    int32_t token = pick(logits, s, made);
    position = static_cast<int32_t>(length); // of what comes next
    if (s.keepsCache)
      given = {token};
    else if (length < config->context)
      given[length] = token;
    ++length;
    result.tokens.push_back(token);
    onToken(token);
  }
  result.msPerToken = medianOf(times);
  if (*dump) { // the last run once more
    runtime::TensorView inputs[] = {{ir::DType::i32, {1, static_cast<int64_t>(ran.size())}, ran.data()},
                                    {ir::DType::i32, {}, &ranAt}};
    runtime::TensorView output{ir::DType::f32, {1, config->vocab}, logits.data()};
    if (auto error = dumpRun(**dump, *compiled, *device, settings,
                             {.verb = "generate",
                              .config = s.checkpoint,
                              .precision = s.fp8 ? "fp8" : ir::name(s.precision).str(),
                              .function = "decode",
                              .inputs = inputs,
                              .outputs = output}))
      return error;
    if (auto error = finishDump(**dump)) return error;
  }
  result.compiled = program.compileStats().compiled;
  result.kernels = program.kernelsPerRun(), result.launches = program.launchesPerRun();
  result.plans = program.plansBuilt();
  result.peakBytes = program.peakBytes();
  for (const runtime::Fallback &fallback : program.fallbacks())
    result.fallbacks.push_back(fallback.where + ": " + fallback.reason);
  auto bytes = fp8WeightBytes(program);
  if (!bytes) return bytes.takeError();
  result.weightBytes = *bytes;
  return result;
}

} // namespace fusor::frontend
