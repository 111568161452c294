// Inference with the weights of linear layers kept in FP8 alone: E4M3 and one scale a tensor, half the bytes of bf16.
//
//   param @w : f32[N, K]                                  param @w : f8e4m3[N, K]
//   derived @w.bf16 : bf16[N, K] = cast @w                param @w.scale_inv : f32[]
//                                                    =>   %f = cast @w {to = f32}
//                                                         %s = mul %f, @w.scale_inv
//                                                         %w = cast %s {to = bf16}
//   %y = linear %x, @w.bf16                               %y = linear %x, %w
//
//   derived @w.fp8 : f8e4m3[N, K] = fp8_cast @w, @w.scale
//   derived @w.scale_inv = reciprocal @w.scale            %p = linear %q, @w {out = f32}
//   %p = linear %q, @w.fp8 {out = f32}               =>   %s = mul %p, @x.scale_inv
//   %s = mul %p, @x.scale_inv                             %t = mul %s, @w.scale_inv
//   %t = mul %s, @w.scale_inv
//
// Activations stay as they are: in the first form the product is what it was, of a weight that is made right before it
// and lives no longer. A product in FP8 reads the weight as it is. Whoever loads the parameters quantises them
// (frontend/api/fp8_weights.h).
#pragma once
#include "passes/context.h"

namespace fusor::passes {

/// Every parameter that nothing but linear layers read, where options.fp8Weights is set; a head's (a layer whose result
/// goes to nothing but results or a loss) stays. Records each layer, and why not. After derive and fp8-fold.
llvm::Expected<bool> fp8Weights(ir::Module &module, PassContext &context);

/// The name of 1 / scale of a weight in FP8: "blocks.0.fc1.weight.scale_inv".
std::string weightInverseName(llvm::StringRef weight);
/// Whether `param` is such a weight.
bool isFp8Weight(const ir::Module &module, const ir::Persistent &param);

} // namespace fusor::passes
