// The program of CONTRACT.md, small enough for a test: a user's view of Fusor, through the installed package alone.
#include <cmath>
#include <cstdio>
#include <fusor/fusor.h>

namespace f = fusor;

int main() {
  f::Builder b("minigpt");
  auto tokens = b.input("tokens", f::i32, {f::dim("B", 1, 64), 32});
  auto targets = b.input("targets", f::i32, {f::dim("B"), 32});
  auto logits = f::nn::gpt(b, tokens, {.vocab = 96, .width = 64, .heads = 2, .layers = 2, .ffn = 256, .context = 32});
  auto loss = f::crossEntropy(logits, targets); // logits [B, 32, 96], mean over tokens
  f::Module m = b.trainingStep(loss, f::AdamW{.lr = 3e-3}, f::Bf16{});
  auto program = f::compile(m, f::Device::cpu());
  if (!program) return f::report(program.error());

  double first = 0, last = 0;
  for (auto [x, y] : f::syntheticBatches({.batch = 8, .steps = 20, .vocab = 96, .context = 32})) {
    auto step = program->run({{"tokens", x}, {"targets", y}});
    if (step.error()) return f::report(step.error());
    last = step.loss();
    if (step.index == 1) first = last;
  }
  std::printf("loss %.4f -> %.4f, %zu kernels, %lld bytes\n", first, last, program->kernels().size(),
              static_cast<long long>(program->peakBytes()));
  if (!(std::fabs(first - std::log(96.0)) < 0.2) || !(last < first - 0.3)) return std::puts("it did not learn"), 1;

  // Two programs in one process; the second goes on from the checkpoint of the first.
  if (auto error = program->save("checkpoint")) return f::report(error);
  auto other = f::compile(m, f::Device::cpu());
  if (!other) return f::report(other.error());
  if (auto error = other->load("checkpoint")) return f::report(error);
  for (auto [x, y] : f::syntheticBatches({.batch = 8, .steps = 1, .vocab = 96, .context = 32, .seed = 7})) {
    const double here = program->run({{"tokens", x}, {"targets", y}}).loss();
    const double there = other->run({{"tokens", x}, {"targets", y}}).loss();
    std::printf("next loss %.6f, after loading %.6f\n", here, there);
    if (here != there) return std::puts("the checkpoint is not the program"), 1;
  }

  // A mistake is a diagnostic that names this file, not a crash.
  f::Builder wrong("wrong");
  auto x = wrong.input("x", f::f32, {4, 3});
  wrong.output(x + wrong.input("y", f::f32, {5}));
  auto refused = f::compile(wrong.module(), f::Device::cpu());
  if (refused) return std::puts("a mistake was accepted"), 1;
  if (refused.error().text().find("minigpt.cpp:") == std::string::npos)
    return std::printf("no place in: %s\n", refused.error().text().c_str()), 1;

  return m.str().find("func @") == std::string::npos; // the IR
}
