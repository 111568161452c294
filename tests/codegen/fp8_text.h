// A text that tests with and without sanitizers run: LayerNorm's gradient that quantises both ways.
#pragma once

namespace fusor::codegen::tests {

/// Two transposed results leave no memory for a second row of %r, which the first sweep does not read.
inline constexpr char kTwoTransposedAndALateInput[] = R"(
dim B in 1..10000
func @f(%dy: bf16[B, 768], %x: bf16[B, 768], %w: f32[768], %mean: f32[B, 1], %rstd: f32[B, 1], %r: bf16[B, 768], %s: f32[]) -> f8e4m3[768, B], f32[768], f32[768], f8e5m2[B, 768], f8e5m2[768, B], bf16[768] {
  %h = normalize %x, %rstd, mean = %mean, weight = %w {out = f32}
  %hq = fp8_cast %h, %s
  %ht = transpose %hq {perm = [1, 0]}
  %dx = layer_norm_grad %dy, %x, %mean, %rstd, weight = %w
  %dw, %db = layer_norm_param_grad %dy, %x, %mean, %rstd
  %y = add %dx, %r
  %q = fp8_cast %y, %s {dtype = f8e5m2}
  %t = transpose %q {perm = [1, 0]}
  %z = cast %y {to = f32}
  %f = sum %z {dims = [0]}
  %c = cast %f {to = bf16}
  return %ht, %dw, %db, %q, %t, %c
})";

} // namespace fusor::codegen::tests
