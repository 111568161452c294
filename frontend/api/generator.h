// New tokens from a checkpoint, one at a time over a KV cache.
#pragma once
#include "frontend/api/device.h"
#include "frontend/api/fp8_weights.h"
#include "ir/types/dtype.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace fusor::frontend {

struct GenerateSettings {
  std::string checkpoint = {};
  std::vector<int32_t> prompt = {}; // token ids
  std::string text = {};            // or text, of a model trained on bytes
  int64_t newTokens = 24;
  double temperature = 0; // 0: the most likely token, the first of equals
  int64_t topK = 0;       // 0: all
  uint64_t seed = 0;
  bool keepsCache = true; // of keys and values; else each token reads all tokens before it again
  ir::DType precision = ir::DType::bf16;
  bool fp8 = false;            // products of linear layers in FP8, with the scales of a checkpoint that was trained so
  bool fp8Weights = false;     // linear layers' weights in FP8 alone
  std::string saveFolder = {}; // the weights as this program has them, as a checkpoint; then no prompt is needed
  DeviceSettings device = {};
};

struct Generated {
  std::vector<int32_t> prompt = {}, tokens = {}; // `tokens` are the new ones
  bool isText = false;                           // the model's tokens are bytes
  bool contextFull = false;                      // stopped early: the context has no place left
  double promptMs = 0, msPerToken = 0;           // the first token, with the whole prompt; median of the others
  unsigned plans = 0;                            // memory plans made; more tokens make no more
  unsigned compiled = 0, kernels = 0;            // in this process; of a token
  unsigned launches = 0;                         // of a token
  WeightBytes weightBytes = {};                  // of those in FP8
  int64_t peakBytes = 0;
  std::string device = {};
  std::vector<std::string> fallbacks = {};
};

/// `token` is called with each new token as it comes.
llvm::Expected<Generated> generate(
    const GenerateSettings &settings, llvm::function_ref<void(int32_t)> token = [](int32_t) {});

} // namespace fusor::frontend
