// Lesson 3: attention is one op, with grouped heads, a causal mask and a window as attributes.
//
// q is [B, T, heads*d], k and v are [B, T, kvHeads*d]: what a linear layer writes, nothing is transposed. Query i sees
// keys i - window + 1 to i. The same in plain C++ stands below, as the definition.
#include "frontend/api/fusor.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace f = fusor;

constexpr int kTime = 12, kHeads = 4, kKvHeads = 2, kSize = 8, kWindow = 5;

// Element [query, head, e] of the result for batch 0.
double byHand(const f::Tensor &q, const f::Tensor &k, const f::Tensor &v, int query, int head, int e) {
  int kvHead = head / (kHeads / kKvHeads);
  auto key = [&](const f::Tensor &t, int j, int i) { return t.at((j * kKvHeads + kvHead) * kSize + i); };
  double sum = 0, weighted = 0;
  for (int j = std::max(0, query - kWindow + 1); j <= query; ++j) {
    double score = 0;
    for (int i = 0; i < kSize; ++i) score += q.at((query * kHeads + head) * kSize + i) * key(k, j, i);
    double weight = std::exp(score / std::sqrt(kSize));
    sum += weight, weighted += weight * key(v, j, e);
  }
  return weighted / sum;
}

int main() {
  f::Builder b("attention");
  f::Dim batch = f::dim("B", 1, 8);
  f::Value q = b.input("q", f::f32, {batch, kTime, kHeads * kSize});
  f::Value k = b.input("k", f::f32, {batch, kTime, kKvHeads * kSize});
  f::Value v = b.input("v", f::f32, {batch, kTime, kKvHeads * kSize});
  b.output(f::attention(q, k, v, {.heads = kHeads, .kvHeads = kKvHeads, .causal = true, .window = kWindow}), "y");
  auto program = f::compile(b.module(), f::Device::best());
  if (!program) return f::report(program.error());

  auto filled = [](int64_t width, double phase) {
    f::Tensor t(f::f32, {1, kTime, width});
    for (int64_t i = 0; i < t.elements(); ++i)
      t.as<float>()[i] = static_cast<float>(std::sin(0.37 * static_cast<double>(i) + phase));
    return t;
  };
  f::Tensor tq = filled(kHeads * kSize, 0), tk = filled(kKvHeads * kSize, 1), tv = filled(kKvHeads * kSize, 2);
  f::Step step = program->run({{"q", tq}, {"k", tk}, {"v", tv}});
  if (step.error()) return f::report(step.error());
  for (const f::Kernel &kernel : program->kernels())
    std::printf("kernel %s (%s)\n", kernel.name.c_str(), kernel.kind.c_str());

  double worst = 0;
  for (int t = 0; t < kTime; ++t)
    for (int h = 0; h < kHeads; ++h)
      for (int e = 0; e < kSize; ++e)
        worst =
            std::max(worst, std::fabs(step.result().at((t * kHeads + h) * kSize + e) - byHand(tq, tk, tv, t, h, e)));
  std::printf("largest difference from the definition: %.2g\n", worst);
  return worst > 1e-5;
}
