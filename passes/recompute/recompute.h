// recompute: a cheap value that would lie in memory until the backward pass is computed again there, from a value that
// lies there anyway, by a kernel that reads that one anyway.
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
// Only elementwise ops; bits do not change. "Late" is what depends on another reader of the value: no reader knows of a
// backward pass. PassOptions::recompute switches it off.
#pragma once
#include "passes/context.h"

namespace fusor::passes {

llvm::Expected<bool> recompute(ir::Module &module, PassContext &context);

} // namespace fusor::passes
