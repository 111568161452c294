// Delayed scaling's state update, once a step: from the amaxes of this step to the next one's scales.
//
//   %q, %a = quantize %x, @fc.input.scale                     %q, %a = quantize %x, @fc.input.scale
//   ...                                                  =>   ...
//   return %loss                                              %h, %s, %i = amax_update @fc.input.amax_history,
//                                                                          @fc.input.scale, %a
//                                                             return %loss, @fc.input.amax_history = %h,
//                                                                    @fc.input.scale = %s, @fc.input.scale_inv = %i
//
// `derived @fc.input.scale_inv = reciprocal @fc.input.scale`: one division a step in place of one an element.
//
// Several quantizes with one scale (a layer that is used twice) give the largest of their amaxes. With micro-batches,
// @accumulate keeps the largest so far in slot 0 of the history, the one being collected, and @train_step takes it from
// there: Transformer Engine would update after each micro-batch.
//
// With returnStats @train_step also returns, for each tensor, which part of it did not fit with the scale of this step:
//   %clipped.fc.input    larger than what rounds to the largest value (464 in E4M3, below 61440 in E5M2), times scale
//   %underflow.fc.input  not 0, and 0 in FP8
//
// A recipe that only measures does so in inference too: each function there returns the scales that its amaxes make.
#pragma once
#include "passes/context.h"

namespace fusor::passes {

/// @train_step and @accumulate, where options.fp8 is set. Where there is no step, and nothing is to be quantised, every
/// function.
llvm::Expected<bool> fp8Update(ir::Module &module, PassContext &context);

} // namespace fusor::passes
