// MiniGPT and its relatives: token and position embeddings, transformer layers, final norm, head.
//
// Persistent values: emb.weight, pos.weight, blocks.<i>.{ln1,qkv,proj,ln2,fc1,fc2}.{weight,bias}, ln_f.{weight,bias},
// head.weight. A decoding function has the states cache.<i>.{k,v} f32[batch, context, kv width] besides.
#pragma once
#include "frontend/nn/transformer.h"

namespace fusor::nn {

struct GptConfig {
  int64_t vocab = 96, width = 64, heads = 2, layers = 2, ffn = 256, context = 32;
  int64_t kvHeads = 0; ///< 0: as many as heads
  int64_t window = 0;
  Activation activation = Activation::gelu;
  bool rmsNorm = false, bias = true, zeroCentredGamma = false;
  bool rope = false; ///< rotary positions instead of pos.weight
  ResidualOrder order = ResidualOrder::preNorm;
  double dropout = 0;
};

/// tokens i32[B, T] with T <= context -> logits [B, T, vocab]
FUSOR_API Value gpt(Builder &b, Value tokens, const GptConfig &config, Site site = Site::here());

/// tokens i32[1, T] with T <= context, place i32[] below T -> logits [1, vocab] of the token at that place; what stands
/// behind it counts for nothing. Decoding without a cache: all tokens again for each new one.
FUSOR_API Value gptAt(Builder &b, Value tokens, Value place, const GptConfig &config, Site site = Site::here());

/// tokens i32[N, T] at positions position, position + 1, ... of sequences whose earlier keys are in the cache
/// -> logits [N, vocab] of the last token. One function for the prompt (T tokens, position 0) and for each new token
/// (T = 1). N must be a number: the cache has that many rows.
FUSOR_API Value gptDecode(Builder &b, Value tokens, Value position, const GptConfig &config, Site site = Site::here());

} // namespace fusor::nn
