// FP8 products as tensor cores of sm_89 and sm_90 have them: both operands contiguous along the sum ("TN").
//
//   %dx = linear_input_grad %dy, @w.fp8 {out = f32}      %dx = linear %dy, @w.fp8.t {gradient_of = input, out = f32}
//                                                   =>
//   %dw = linear_weight_grad %dy, %x {out = f32}         %dy.t = transpose (reshape %dy {shape = [B*T, N]})  : [N, B*T]
//                                                        %x.t = transpose (reshape %x {shape = [B*T, K]})    : [K, B*T]
//                                                        %dw = linear %dy.t, %x.t {gradient_of = weight, out = f32}
//
// `derived @w.fp8.t = transpose @w.fp8` is written by whoever writes @w.fp8, from what it writes: a weight is quantised
// once. The transposes of activations and gradients stand right behind what they transpose, so that the kernel that
// quantises can write both; a forward activation that `recompute` leaves waits for its weight gradient transposed, and
// in no other form. Sums have the same terms in the same order: on a device that emulates FP8 the values do not change.
#pragma once
#include "passes/context.h"

namespace fusor::passes {

/// Every function, where the target has a library for FP8 products. Products with an operand that is not FP8 stay.
/// Records each product with its role where options.fp8 is set (products.h).
llvm::Expected<bool> fp8Tn(ir::Module &module, PassContext &context);

} // namespace fusor::passes
