// Activations: formulas of one tensor.
#include "frontend/onnx/ops/common.h"

namespace fusor::onnx {

using ir::Dim;

Term swish(Term x, double slope) {
  if (slope == 1) return x.apply("silu");
  return x * (x * slope).apply("sigmoid");
}

namespace {

void relu(NodeSite &s) { direct(s, "relu"); }
void tanh(NodeSite &s) { direct(s, "tanh"); }
void sigmoid(NodeSite &s) { direct(s, "sigmoid"); }
void softplus(NodeSite &s) { direct(s, "softplus"); }
void leakyRelu(NodeSite &s) { direct(s, "leaky_relu", {{"alpha", s.real("alpha", 0.01)}}); }
void elu(NodeSite &s) { direct(s, "elu", {{"alpha", s.real("alpha", 1)}}); }

void gelu(NodeSite &s) {
  std::string form = s.text("approximate", "none");
  if (form != "none" && form != "tanh") s.fail("attribute 'approximate' must be none or tanh, is '{0}'", form);
  s.out(0, s.in(0).apply("gelu", {{"form", std::string(form == "tanh" ? "tanh" : "erf")}}));
}
void swishWithAlpha(NodeSite &s) { s.out(0, swish(s.in(0), s.real("alpha", 1))); }

void swiGlu(NodeSite &s) {
  Term gate = s.in(0), x = s.in(1);
  if (gate.shape() != x.shape())
    return void(s.fail("the gate {0} and the value {1} must be of one shape", gate.typeText(), x.typeText()));
  s.out(0, swish(gate, s.real("alpha", 1)) * x);
}

Term limited(Term x) { return x.apply("clamp", {{"low", 0.0}, {"high", 1.0}}); }
void hardSigmoid(NodeSite &s) { s.out(0, limited(s.in(0) * s.real("alpha", 0.2) + s.real("beta", 0.5))); }
void hardSwish(NodeSite &s) {
  Term x = s.in(0);
  s.out(0, x * limited(x / 6.0 + 0.5));
}
void selu(NodeSite &s) {
  double alpha = s.real("alpha", 1.67326319217681884765625), gamma = s.real("gamma", 1.05070102214813232421875);
  s.out(0, s.in(0).apply("elu", {{"alpha", alpha}}) * gamma);
}
void celu(NodeSite &s) {
  double alpha = s.real("alpha", 1);
  if (alpha == 0) s.fail("attribute 'alpha' must not be 0");
  s.out(0, (s.in(0) / alpha).apply("elu") * alpha);
}
void thresholdedRelu(NodeSite &s) {
  Term x = s.in(0);
  s.out(0, x ? select(x > s.real("alpha", 1), x, s.writer().constant(0, x.dtype())) : x);
}
void softsign(NodeSite &s) {
  Term x = s.in(0);
  s.out(0, x / (x.apply("abs") + 1.0));
}
void mish(NodeSite &s) {
  Term x = s.in(0);
  s.out(0, x * x.apply("softplus").apply("tanh"));
}
void prelu(NodeSite &s) {
  Term x = s.in(0);
  s.out(0, select(x < 0.0, x * s.in(1), x));
}

// com.microsoft
void biasGelu(NodeSite &s) { s.out(0, (s.in(0) + s.in(1)).apply("gelu", {{"form", std::string("erf")}})); }
void geluErf(NodeSite &s) { s.out(0, s.in(0).apply("gelu", {{"form", std::string("erf")}})); }
void fastGelu(NodeSite &s) {
  Term x = s.in(0);
  if (Term bias = s.optionalIn(1)) x = x + bias;
  s.out(0, x.apply("gelu"));
}
// One half of x + bias, gated by gelu of the other.
void biasSplitGelu(NodeSite &s) {
  Term x = s.in(0) + s.in(1);
  auto half = x ? x.dim(-1).divide(Dim(2)) : std::nullopt;
  if (!half || x.rank() != 3 || x.shape() != s.type(0).shape)
    return void(s.fail("needs [N, S, 2*D] and a bias, has {0}", s.type(0).str()));
  s.out(0, x.part(2, Dim(0), *half) * x.part(2, *half, *half).apply("gelu", {{"form", std::string("erf")}}));
}
void quickGelu(NodeSite &s) { s.out(0, swish(s.in(0), s.real("alpha", 1.702))); }

} // namespace

llvm::ArrayRef<OpEntry> activationOperators() {
  static const std::vector<OpEntry> entries = {
      {"", "Relu", 1, relu},
      {"", "Tanh", 1, tanh},
      {"", "Sigmoid", 1, sigmoid},
      {"", "Softplus", 1, softplus},
      {"", "LeakyRelu", 1, leakyRelu},
      {"", "Elu", 1, elu},
      {"", "Selu", 1, selu},
      {"", "Celu", 12, celu},
      {"", "Gelu", 20, gelu},
      {"", "Swish", 24, swishWithAlpha},
      {"", "SwiGLU", 28, swiGlu},
      {"", "HardSigmoid", 1, hardSigmoid},
      {"", "HardSwish", 14, hardSwish},
      {"", "ThresholdedRelu", 10, thresholdedRelu},
      {"", "Softsign", 1, softsign},
      {"", "Mish", 18, mish},
      {"", "PRelu", 7, prelu},
      {"com.microsoft", "Gelu", 1, geluErf},
      {"com.microsoft", "BiasGelu", 1, biasGelu},
      {"com.microsoft", "FastGelu", 1, fastGelu},
      {"com.microsoft", "QuickGelu", 1, quickGelu},
      {"com.microsoft", "BiasSplitGelu", 1, biasSplitGelu},
  };
  return entries;
}

} // namespace fusor::onnx
