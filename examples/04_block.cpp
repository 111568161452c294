// Lesson 4: a transformer layer, and how its options change the graph.
//
// The same class builds a GPT-2 block (LayerNorm, GELU, biases) and a Llama-like one (RMSNorm, SwiGLU, rotary
// positions, grouped heads, no biases). The kernels show what was fused: norms with what they read, biases and
// activations into the GEMMs they follow.
#include "frontend/api/fusor.h"
#include <cmath>
#include <cstdio>

namespace f = fusor;

static int show(const char *name, const f::nn::LayerOptions &options) {
  f::Builder b(name);
  f::nn::TransformerLayer layer(b, "block", options);
  b.output(layer(b.input("x", f::f32, {f::dim("B", 1, 8), 16, options.width})), "y");
  auto program = f::compile(b.module(), f::Device::best());
  if (!program) return f::report(program.error());

  f::Tensor x(f::f32, {2, 16, options.width});
  for (int64_t i = 0; i < x.elements(); ++i) x.as<float>()[i] = static_cast<float>(std::cos(static_cast<double>(i)));
  f::Step step = program->run({{"x", x}});
  if (step.error()) return f::report(step.error());
  std::printf("%s: %zu kernels, %lld bytes\n", name, program->kernels().size(),
              static_cast<long long>(program->peakBytes()));
  for (const f::Kernel &k : program->kernels()) std::printf("  %-12s %s\n", k.kind.c_str(), k.name.c_str());
  // Weights are N(0, 0.02): a block starts close to the identity.
  double moved = 0;
  for (int64_t i = 0; i < x.elements(); ++i) moved = std::fmax(moved, std::fabs(step.result().at(i) - x.at(i)));
  std::printf("  largest change of an element: %.3f\n", moved);
  return !(moved > 1e-4 && moved < 0.5);
}

int main() {
  int gpt2 = show("gpt2_block", {.width = 64, .ffn = 256, .attention = {.heads = 4}});
  int llama =
      show("llama_block", {.width = 64,
                           .ffn = 172,
                           .attention = {.heads = 4, .kvHeads = 2, .bias = false, .rope = true},
                           .mlp = {.activation = f::nn::Activation::swiglu, .bias = false, .norm = {.rms = true}}});
  return gpt2 ? gpt2 : llama;
}
