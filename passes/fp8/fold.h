// Quantised tensors become what kernels work on: plain FP8 data, scales, and ordinary ops.
//
//   %q, %a = quantize %x, @s                 %q = fp8_cast %x, @s                         : f8e4m3[B, 64]
//                                            %a = amax %x                                 : f32[]
//   %y = linear %q, @w.fp8, bias = %b   =>   %p = linear %q, @w.fp8 {fast_accum, out = f32}
//                                            %y = cast (%p * @s_inv * @w.scale_inv + %b)  : bf16[B, 256]
//   %m = grad_quantize %y, @g                %y itself: its gradient has been taken
//
// `derived @s_inv = reciprocal @s` (update.h). A multiplication by 1 / scale, per scale, after the sum: the
// dequantisation is folded into the GEMM, and every rounding is still in the IR. So FP8 needs no kernel class of its
// own, and whatever runs plain FP8 tensors emulates any recipe with the same values: the CPU, CUDA cores, tensor cores.
// `derived @w.fp8 = quantize(@w, @w.scale)` becomes fp8_cast(@w, @w.scale).
#pragma once
#include "passes/context.h"

namespace fusor::passes {

/// Every function. A quantised tensor that crosses its border stays as it is.
llvm::Expected<bool> fp8Fold(ir::Module &module, PassContext &context);

} // namespace fusor::passes
