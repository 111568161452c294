// From f32 to bf16 or f16 compute, with f32 masters, f32 statistics and an f32 loss.
//
//   %e = embedding @emb, %t          : f32[B, T, D]      %e = embedding @emb, %t        : f32[B, T, D]
//   %h = add %e, @pos                : f32[B, T, D]      %h = add %e, @pos              : f32[B, T, D]
//                                                        %h.bf16 = cast %h              : bf16[B, T, D]   the residual
//                                                        stream
//   %n = layer_norm %h, @g, @b       : f32[B, T, D]  =>  %n = layer_norm %h.bf16, @g, @b : bf16[B, T, D], f32
//   statistics
//                                                        %w.bf16 = cast @w              : bf16[F, D]
//   %y = linear %n, @w               : f32[B, T, F]      %y = linear %n, %w.bf16        : bf16[B, T, F]
//
// Which op computes in what is a property of the op table (PrecisionClass). A value is rounded where it is made, once,
// for all its low users; a norm rounds its result where somebody computes on it in the low dtype; a head with fewer
// than options.wideHeadBelow outputs stays in f32. Arguments and results keep the dtype they were declared with.
// A state that only caches rows (cache_write) takes the low dtype. Explicit casts of the user stay.
#pragma once
#include "passes/context.h"

namespace fusor::passes {

/// Converts every function to options.precision; f32 changes nothing, other dtypes than f32, bf16 and f16 are an error.
llvm::Expected<bool> precision(ir::Module &module, PassContext &context);

} // namespace fusor::passes
