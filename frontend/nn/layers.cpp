#include "frontend/nn/layers.h"

namespace fusor::nn {

Linear::Linear(Builder &b, const std::string &name, int64_t in, int64_t out, const LinearOptions &options, Site site)
    : builder_(b), name_(name), bias_(options.bias) {
  b.param(name + ".weight", f32, {out, in}, options.weight, site);
  if (bias_) b.param(name + ".bias", f32, {out}, Init::zeros(), site);
}

Value Linear::operator()(Value x, Site site) const {
  Value bias = bias_ ? builder_.read(name_ + ".bias", site) : Value();
  return linear(x, builder_.read(name_ + ".weight", site), bias, site).named(name_);
}

Norm::Norm(Builder &b, const std::string &name, int64_t width, const NormOptions &options, Site site)
    : builder_(b), name_(name), options_(options) {
  b.param(name + ".weight", f32, {width}, options.zeroCentredGamma ? Init::zeros() : Init::constant(1), site);
  if (!options.rms && options.bias) b.param(name + ".bias", f32, {width}, Init::zeros(), site);
}

Value Norm::operator()(Value x, Site site) const {
  Value weight = builder_.read(name_ + ".weight", site);
  if (options_.zeroCentredGamma) weight = (Operand(weight, site) + Operand(1.0, site)).named(name_ + ".gamma");
  if (options_.rms) return rmsNorm(x, weight, options_.eps, site).named(name_);
  Value bias = options_.bias ? builder_.read(name_ + ".bias", site) : Value();
  return layerNorm(x, weight, bias, options_.eps, site).named(name_);
}

Embedding::Embedding(Builder &b, const std::string &name, int64_t vocab, int64_t width, Init weight, Site site)
    : builder_(b), name_(name) {
  b.param(name + ".weight", f32, {vocab, width}, weight, site);
}

Value Embedding::operator()(Value ids, Site site) const {
  return embedding(builder_.read(name_ + ".weight", site), ids, site).named(name_);
}

bool isGated(Activation a) { return a >= Activation::geglu; }

namespace {
Value plain(Value x, Activation a, Site site) {
  auto squared = [&](Value v) { return Operand(v, site) * Operand(v, site); };
  switch (a) {
  case Activation::gelu:
  case Activation::geglu: return gelu(x, site);
  case Activation::geluErf: return geluErf(x, site);
  case Activation::quickGelu:
  case Activation::quickGeglu:
    return Operand(x, site) * Operand(sigmoid(Operand(x, site) * Operand(1.702, site), site), site);
  case Activation::relu:
  case Activation::reglu: return relu(x, site);
  case Activation::squaredRelu:
  case Activation::squaredReglu: return squared(relu(x, site));
  case Activation::silu:
  case Activation::swiglu: return silu(x, site);
  }
  return {};
}
} // namespace

Value activate(Value x, Activation activation, Site site) {
  if (!isGated(activation) || x.empty()) return plain(x, activation, site);
  int64_t width = x.dim(-1).number();
  auto halves = split(x, {width - width / 2, width / 2}, -1, site);
  return Operand(plain(halves[0], activation, site), site) * Operand(halves[1], site);
}

LayerNormLinear::LayerNormLinear(Builder &b, const std::string &normName, const std::string &linearName, int64_t in,
                                 int64_t out, const NormOptions &norm, const LinearOptions &linear, Site site)
    : norm_(b, normName, in, norm, site), linear_(b, linearName, in, out, linear, site) {}

LayerNormMLP::LayerNormMLP(Builder &b, const std::string &name, int64_t width, int64_t ffn, const MLPOptions &o,
                           Site site)
    : name_(name), norm_(b, name + ".ln2", width, o.norm, site),
      fc1_(b, name + ".fc1", width, isGated(o.activation) ? 2 * ffn : ffn, {.bias = o.bias}, site),
      fc2_(b, name + ".fc2", ffn, width, {.bias = o.bias}, site), activation_(o.activation) {}

Value LayerNormMLP::feedForward(Value x, Site site) const {
  return fc2_(activate(fc1_(x, site), activation_, site).named(name_ + ".activation"), site);
}

} // namespace fusor::nn
