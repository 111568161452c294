// Layers with parameters. Constructing one declares its parameters under its name; calling it builds its ops.
//   fusor::nn::Linear fc(b, "fc1", 256, 1024);     // fc1.weight f32[1024, 256] N(0, 0.02), fc1.bias f32[1024] zeros
//   auto h = fc(x);                                // [..., 256] -> [..., 1024]
// A layer may be called in several functions of its builder and more than once in each: the parameters are the same.
#pragma once
#include "frontend/builder/builder.h"

namespace fusor::nn {

/// The initial value of every weight here unless told otherwise.
inline constexpr double kWeightDeviation = 0.02;

struct LinearOptions {
  bool bias = true;
  Init weight = Init::normal(kWeightDeviation);
};
class FUSOR_API Linear {
public:
  Linear(Builder &b, const std::string &name, int64_t in, int64_t out, const LinearOptions &options = {},
         Site site = Site::here());
  Value operator()(Value x, Site site = Site::here()) const;

private:
  mutable Builder builder_;
  std::string name_;
  bool bias_;
};

struct NormOptions {
  bool rms = false; ///< RMSNorm instead of LayerNorm
  bool bias = true; ///< of LayerNorm
  double eps = 1e-5;
  bool zeroCentredGamma = false; ///< the weight starts at 0 and 1 is added where it is used
};
/// LayerNorm, or RMSNorm where options.rms, over the last dim.
class FUSOR_API Norm {
public:
  Norm(Builder &b, const std::string &name, int64_t width, const NormOptions &options = {}, Site site = Site::here());
  Value operator()(Value x, Site site = Site::here()) const;

private:
  mutable Builder builder_;
  std::string name_;
  NormOptions options_;
};
/// x to mean 0 and variance 1, times weight, plus bias.
class FUSOR_API LayerNorm : public Norm {
public:
  LayerNorm(Builder &b, const std::string &name, int64_t width, NormOptions options = {}, Site site = Site::here())
      : Norm(b, name, width, (options.rms = false, options), site) {}
};
/// x to mean square 1, times weight.
class FUSOR_API RMSNorm : public Norm {
public:
  RMSNorm(Builder &b, const std::string &name, int64_t width, NormOptions options = {}, Site site = Site::here())
      : Norm(b, name, width, (options.rms = true, options), site) {}
};

/// Rows of `weight` [vocab, width] at integer ids.
class FUSOR_API Embedding {
public:
  Embedding(Builder &b, const std::string &name, int64_t vocab, int64_t width,
            Init weight = Init::normal(kWeightDeviation), Site site = Site::here());
  Value operator()(Value ids, Site site = Site::here()) const;

private:
  mutable Builder builder_;
  std::string name_;
};

/// The gated ones split what they get into two halves: activation(first) * second.
enum class Activation : uint8_t {
  gelu,
  geluErf,
  quickGelu,
  relu,
  squaredRelu,
  silu,
  geglu,
  quickGeglu,
  reglu,
  squaredReglu,
  swiglu
};
FUSOR_API bool isGated(Activation activation);
/// [..., N] -> [..., N], or [..., N/2] where it is gated.
FUSOR_API Value activate(Value x, Activation activation, Site site = Site::here());

/// A norm and the Linear that reads it.
class FUSOR_API LayerNormLinear {
public:
  LayerNormLinear(Builder &b, const std::string &normName, const std::string &linearName, int64_t in, int64_t out,
                  const NormOptions &norm = {}, const LinearOptions &linear = {}, Site site = Site::here());
  Value operator()(Value x, Site site = Site::here()) const { return linear_(norm_(x, site), site); }

private:
  Norm norm_;
  Linear linear_;
};

struct MLPOptions {
  Activation activation = Activation::gelu;
  bool bias = true;
  NormOptions norm = {};
};
/// Parameters NAME.ln2, NAME.fc1 [ffn or 2 ffn, width], NAME.fc2 [width, ffn]: fc2(activation(fc1(norm(x)))).
class FUSOR_API LayerNormMLP {
public:
  LayerNormMLP(Builder &b, const std::string &name, int64_t width, int64_t ffn, const MLPOptions &options = {},
               Site site = Site::here());
  Value operator()(Value x, Site site = Site::here()) const { return feedForward(norm_(x, site), site); }
  /// The same without the norm.
  Value feedForward(Value x, Site site = Site::here()) const;
  Value norm(Value x, Site site = Site::here()) const { return norm_(x, site); }

private:
  std::string name_;
  Norm norm_;
  Linear fc1_, fc2_;
  Activation activation_;
};

} // namespace fusor::nn
