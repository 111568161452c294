// Lesson 5: training. One call makes the whole step: forward, gradients, AdamW, f32 masters under bf16 compute.
//
// A step reads its tokens and returns its loss; parameters, moments and the step counter are values of the program that
// it updates in place. A checkpoint is those values under their names, so a second program goes on with the same bits.
#include "frontend/api/fusor.h"
#include <cstdio>
#include <string>

namespace f = fusor;

int main() {
  constexpr int64_t kContext = 32;
  f::Builder b("minigpt");
  auto tokens = b.input("tokens", f::i32, {f::dim("B", 1, 64), kContext});
  auto targets = b.input("targets", f::i32, {f::dim("B"), kContext});
  auto logits =
      f::nn::gpt(b, tokens, {.vocab = 96, .width = 64, .heads = 2, .layers = 2, .ffn = 256, .context = kContext});
  f::Module m = b.trainingStep(f::crossEntropy(logits, targets), f::AdamW{.lr = 3e-3}, f::Bf16{});
  auto program = f::compile(m, f::Device::best());
  if (!program) return f::report(program.error());

  // Sequences that count up by 1 to 6 modulo 96: easy to learn, and cheap to make.
  double loss = 0;
  for (auto [x, y] : f::syntheticBatches({.batch = 16, .steps = 60, .vocab = 96, .context = kContext})) {
    f::Step step = program->run({{"tokens", x}, {"targets", y}});
    if (step.error()) return f::report(step.error());
    loss = step.loss();
    if (step.index % 10 == 0) std::printf("step %2lld  loss %.4f\n", static_cast<long long>(step.index), loss);
  }
  std::printf("%zu kernels, peak %lld bytes on %s\n", program->kernels().size(),
              static_cast<long long>(program->peakBytes()), program->device().c_str());

  const std::string folder = "05_train_step.checkpoint";
  if (f::Error error = program->save(folder)) return f::report(error);
  auto other = f::compile(m, f::Device::best());
  if (!other) return f::report(other.error());
  if (f::Error error = other->load(folder)) return f::report(error);
  f::Batch next = f::syntheticBatches({.batch = 16, .context = kContext, .seed = 1}).at(0);
  double here = program->run({{"tokens", next.tokens}, {"targets", next.targets}}).loss();
  double there = other->run({{"tokens", next.tokens}, {"targets", next.targets}}).loss();
  std::printf("the next step: loss %.6f, and %.6f from the checkpoint\n", here, there);
  return here != there || loss > 2;
}
