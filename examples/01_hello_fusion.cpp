// Lesson 1: three elementwise ops are one kernel.
//
// A Builder records a graph; nothing is computed until the module is compiled. Sizes may be symbols: this program runs
// for any number of rows from 1 to 1024 without being compiled again.
#include "frontend/api/fusor.h"
#include <cmath>
#include <cstdio>

namespace f = fusor;

int main() {
  f::Builder b("hello");
  f::Value x = b.input("x", f::f32, {f::dim("Rows", 1, 1024), 8});
  f::Value bias = b.input("bias", f::f32, {8});
  b.output(f::gelu(x + bias) * 2.0, "y");

  f::Module m = b.module();
  std::puts(m.str().c_str()); // the IR, one op a line

  auto program = f::compile(m, f::Device::best());
  if (!program) return f::report(program.error());

  f::Tensor rows(f::f32, {3, 8}), offset(f::f32, {8});
  for (int i = 0; i < 24; ++i) rows.as<float>()[i] = 0.1f * static_cast<float>(i - 12);
  for (int i = 0; i < 8; ++i) offset.as<float>()[i] = 0.5f;
  f::Step step = program->run({{"x", rows}, {"bias", offset}});
  if (step.error()) return f::report(step.error());

  // One kernel: add, gelu and mul read x once and write y once.
  for (const f::Kernel &k : program->kernels())
    std::printf("kernel %s (%s)\n%s\n", k.name.c_str(), k.kind.c_str(), k.ops.c_str());
  if (program->kernels().size() != 1) return std::puts("expected one kernel"), 1;

  double in = rows.at(5) + 0.5, inner = 0.7978845608 * (in + 0.044715 * in * in * in);
  double expected = in * (1 + std::tanh(inner)); // 2 * gelu
  std::printf("y[0, 5] = %.6f, by hand %.6f\n", step.result().at(5), expected);
  return std::fabs(step.result().at(5) - expected) > 1e-5;
}
