// Lesson 2: layers own parameters.
//
// Constructing a layer declares its parameters under its name (fc1.weight, fc1.bias); calling it adds its ops. A wrong
// call does not throw: it is noted with this file and line, and compile() returns all such notes together.
#include "frontend/api/fusor.h"
#include <cmath>
#include <cstdio>

namespace f = fusor;

int main() {
  // A mistake first: fc2 reads 64 features and is given 32.
  f::Builder wrong("wrong");
  f::nn::Linear fc(wrong, "fc", 64, 10);
  wrong.output(fc(wrong.input("x", f::f32, {4, 32})));
  auto refused = f::compile(wrong.module(), f::Device::best());
  if (refused) return std::puts("a mistake was accepted"), 1;
  std::printf("what a mistake looks like:\n%s\n\n", refused.error().text().c_str());

  f::Builder b("mlp");
  f::nn::Linear fc1(b, "fc1", 16, 64), fc2(b, "fc2", 64, 4);
  f::Value x = b.input("x", f::f32, {f::dim("B", 1, 256), 16});
  b.output(f::softmax(fc2(f::gelu(fc1(x)))), "probabilities");
  auto program = f::compile(b.module(), f::Device::best(), {.seed = 1});
  if (!program) return f::report(program.error());

  // Parameters are read and set by name. With fc2 all zero, every class has the same probability.
  auto weight = program->get("fc2.weight");
  if (!weight) return f::report(weight.error());
  std::printf("fc2.weight [%lld, %lld] starts with %.5f\n", static_cast<long long>(weight->shape()[0]),
              static_cast<long long>(weight->shape()[1]), weight->at(0));
  if (f::Error error = program->set("fc2.weight", f::Tensor(f::f32, {4, 64}))) return f::report(error);

  f::Step step = program->run({{"x", f::Tensor(f::f32, {5, 16})}});
  if (step.error()) return f::report(step.error());
  for (const f::Kernel &k : program->kernels()) std::printf("kernel %-12s %s\n", k.kind.c_str(), k.name.c_str());
  std::printf("p = %.4f %.4f %.4f %.4f\n", step.result().at(0), step.result().at(1), step.result().at(2),
              step.result().at(3));
  return std::fabs(step.result().at(7) - 0.25) > 1e-6;
}
