// recompute: a cheap value that would lie in memory until the backward pass is computed again there, from values that
// lie there anyway, by a kernel that reads those anyway.
//
//   %pre = linear %x, @fc1                          %pre = linear %x, @fc1
//   %g = gelu %pre                                  %g = gelu %pre
//   %y = linear %g, @fc2                            %y = linear %g, @fc2           %g is free from here on
//   ...                                    ->       ...
//   %dg = linear_input_grad %dy, @fc2               %dg = linear_input_grad %dy, @fc2
//   %dpre = gelu_grad %dg, %pre                     %again = gelu %pre             one kernel with gelu_grad
//   %dw = linear_weight_grad %dy, %g                %dpre = gelu_grad %dg, %pre
//                                                   %dw = linear_weight_grad %dy, %again
//
// Cheap is what is elementwise. So is a norm once its statistics are there, and its own gradient reads all they need:
//
//   %n, %mean, %rstd = layer_norm %x, @w, @b        the same                       %n is free after its linear layers
//   ...                                    ->       ...
//   %dx = layer_norm_grad %dn, %x, %mean, ...       %again = normalize %x, %rstd, %mean, @w, @b    one kernel
//   %dw = linear_weight_grad %dy, %n                %dx = layer_norm_grad %dn, %x, %mean, ...
//                                                   %dw = linear_weight_grad %dy, %again
//
// In FP8 what waits is a copy of one byte, and quantize reads its producer unrounded, in f32:
//
//   %wide = cast %pre {to = f32}                    the same                       %q and %wide are free
//   %g = gelu %wide
//   %q = fp8_cast %g, @s
//   %y = linear %q, @fc2.fp8
//   ...                                    ->       ...
//   %dpre = gelu_grad %dg, %wide                    %wide.1 = cast %pre            one kernel: a chain from what
//   %dw = linear_weight_grad %dy, %q                %again = gelu %wide.1          gelu_grad reads to the copy
//                                                   %q.1 = fp8_cast %again, @s
//                                                   %dpre = gelu_grad %dg, %wide.1
//                                                   %dw = linear_weight_grad %dy, %q.1
//
// Two casts need no such kernel: one that widens is part of any kernel on elements, and its operand waits in its place
// in fewer bytes; one that narrows what waits anyway (attention's result, for its gradient) is a small kernel of its
// own.
//
// Bits do not change: a norm ends in the same formula. "Late" is what depends on another reader of the value: no reader
// knows of a backward pass. PassOptions::recompute switches it off.
#pragma once
#include "passes/context.h"

namespace fusor::passes {

llvm::Expected<bool> recompute(ir::Module &module, PassContext &context);

} // namespace fusor::passes
