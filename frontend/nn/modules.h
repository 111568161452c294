// The configurations of the contract, and whole modules of them: what the command line, tests and benchmarks start
// from. Not installed.
#pragma once
#include "frontend/nn/gpt.h"
#include "ir/graph/graph.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <optional>

namespace fusor::nn {

struct NamedConfig {
  const char *name;
  GptConfig config;
  const char *purpose;
};
/// tiny, small, seed, scaled, gpt2.
llvm::ArrayRef<NamedConfig> configurations();
std::optional<GptConfig> configuration(llvm::StringRef name);

/// @forward(%tokens: i32[B, context], %targets: i32[B, context]) -> f32[] (the mean cross entropy). B in 1..maxBatch.
std::unique_ptr<ir::Module> gptForward(const GptConfig &config, llvm::StringRef name = "minigpt",
                                       int64_t maxBatch = 4096);

/// @decode(%tokens: i32[batch, T], %position: i32[]) -> f32[batch, vocab], T in 1..context, with its cache.
std::unique_ptr<ir::Module> gptDecoding(const GptConfig &config, llvm::StringRef name = "minigpt", int64_t batch = 1);

/// The same without a cache: @decode(%tokens: i32[1, context], %place: i32[]) -> f32[1, vocab].
std::unique_ptr<ir::Module> gptDecodingAll(const GptConfig &config, llvm::StringRef name = "minigpt");

/// The error where `config` makes no model: heads that do not divide width, a size below 1.
llvm::Error check(const GptConfig &config);

} // namespace fusor::nn
