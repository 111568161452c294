// From gradients to new parameters: clipping, AdamW, accumulation.
//
//   return %loss, grad @w = %d.w
// =>
//   %step = add @adamw.step, 1
//   %new.w, %new.adamw.m.w, %new.adamw.v.w = adamw @w, %d.w, @adamw.m.w, @adamw.v.w, %step, @optimizer.lr
//   return %loss, @adamw.step = %step, @w = %new.w, @adamw.m.w = %new.adamw.m.w, @adamw.v.w = %new.adamw.v.w
//
// In f16 the gradients come multiplied by a loss scale, and a step whose gradients overflowed changes nothing but that
// scale (loss_scale.h).
//
// With options.accumulate = N > 1 there are two functions. @accumulate runs on the first N - 1 micro-batches of a step
// and returns `@accum.w = @accum.w + %d.w / N`; @train_step runs on the last, updates with that same sum, and sets
// @accum.w to 0. Each returns the loss of its own micro-batch.
#pragma once
#include "passes/context.h"

namespace fusor::passes {

/// Replaces the `grad` entries of @train_step. Adds the states adamw.step (i32[]), adamw.m.NAME and adamw.v.NAME (f32),
/// and optimizer.lr (f32[]), which the host sets and no function writes.
llvm::Expected<bool> optimizer(ir::Module &module, PassContext &context);

} // namespace fusor::passes
