// Attention and the transformer layer, with the options of Transformer Engine's modules that make sense here.
#pragma once
#include "frontend/nn/layers.h"

namespace fusor::nn {

/// Where a function decodes: rows of the cache before `position` are there, this call writes from it on.
struct Decoding {
  Value position;                  ///< i32[]
  int64_t batch = 1, capacity = 1; ///< of the caches CACHE.k and CACHE.v f32[batch, capacity, kvHeads*d]
};

struct AttentionLayerOptions {
  int64_t heads = 1, kvHeads = 0; ///< kvHeads 0: as many as heads
  bool causal = true;
  int64_t window = 0;
  bool bias = true;
  bool rope = false;
  double ropeBase = 10000;
  double dropout = 0; ///< of the projection's result
};
/// Parameters NAME.qkv [(heads + 2 kvHeads) d, width] (rows: all q, then k, then v; head-major inside), NAME.proj.
class FUSOR_API MultiheadAttention {
public:
  MultiheadAttention(Builder &b, const std::string &name, int64_t width, const AttentionLayerOptions &options,
                     Site site = Site::here());
  /// [B, T, width] -> [B, T, width]
  Value operator()(Value x, Site site = Site::here()) const;
  /// The same over the cache, which it updates: states CACHE.k and CACHE.v.
  Value decode(Value x, const std::string &cache, const Decoding &at, Site site = Site::here()) const;

private:
  std::vector<Value> packed(Value x, Value positions, Site site) const;
  mutable Builder builder_;
  std::string name_;
  int64_t width_, headSize_; ///< 0 after an error, which has been recorded
  AttentionLayerOptions options_;
  Linear qkv_, proj_;
};

/// Where the norm sits: x + f(norm(x)), or norm(x + f(x)).
enum class ResidualOrder : uint8_t { preNorm, postNorm };

struct LayerOptions {
  int64_t width = 0, ffn = 0;
  AttentionLayerOptions attention = {};
  MLPOptions mlp = {}; ///< its norm is both norms of the layer
  ResidualOrder order = ResidualOrder::preNorm;
  double dropout = 0; ///< of the MLP's result
};
/// Parameters NAME.{ln1,qkv,proj,ln2,fc1,fc2}.
class FUSOR_API TransformerLayer {
public:
  TransformerLayer(Builder &b, const std::string &name, const LayerOptions &options, Site site = Site::here());
  /// [B, T, width] -> [B, T, width]
  Value operator()(Value x, Site site = Site::here()) const { return run(x, "", nullptr, site); }
  Value decode(Value x, const std::string &cache, const Decoding &at, Site site = Site::here()) const {
    return run(x, cache, &at, site);
  }

private:
  Value run(Value x, const std::string &cache, const Decoding *at, Site site) const;
  mutable Builder builder_;
  std::string name_;
  LayerOptions options_;
  Norm ln1_;
  MultiheadAttention attention_;
  LayerNormMLP mlp_;
};

/// Drops with `rate` by the state `dropout.step`, which each run of the function adds 1 to. `name` tells places apart.
FUSOR_API Value dropout(Builder &b, Value x, double rate, const std::string &name, Site site = Site::here());

} // namespace fusor::nn
