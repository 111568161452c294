// FP8 around the linear layers that the recipe selects: quantised operands, and a marker that quantises the gradient.
//
//   %n = layer_norm %h ...          : bf16[B, 64]             %n = layer_norm %h ... {out = f32}             : f32[B,
//   64] %w = cast @fc.weight {to = bf16}                          %q, %a = quantize %n, @fc.input.scale %y = linear %n,
//   %w, bias = %b   : bf16[B, 256]       =>   %wq, %wa = quantize @fc.weight, @fc.weight.scale
//                                                             %g = linear %q, %wq, bias = %b               : bf16[B,
//                                                             256] %y = grad_quantize %g, @fc.grad_output.scale {dtype
//                                                             = f8e5m2}
//
// quantize reads its producer unrounded: a norm or an elementwise op in front of it gives f32, and what else reads it
// gets the rounded copy it had. The weight is quantised from the f32 master. Each of the three tensors has a scale
// (f32[], 1 at first) and an amax history (f32[L], zeros), named after the layer, which is named after its weight.
// With measureOnly the quantize ops are there for their amaxes alone, and %y stays what it was.
#pragma once
#include "passes/context.h"

namespace fusor::passes {

/// Every function, where options.fp8 is set. Records for each GEMM whether it runs in FP8, and why not. Errors: a
/// recipe with a history, margin or selection that makes no sense, or a precision other than bf16.
llvm::Expected<bool> fp8Insert(ir::Module &module, PassContext &context);

} // namespace fusor::passes
