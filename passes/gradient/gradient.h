// The backward function, from the gradient rules of the op table.
//
//   func @forward(%x, %t) -> f32[] {             func @train_step(%x, %t) -> f32[] {
//     %y = linear %x, @w                           %y = linear %x, @w
//     %loss, %lse, %n = cross_entropy %y, %t       %loss, %lse, %n = cross_entropy %y, %t
//     return %loss                         =>      %d.loss = constant {value = 1.0}
//   }                                              %d.y = cross_entropy_grad %d.loss, %y, %t, %lse, %n
//                                                  %d.w = linear_weight_grad %d.y, %x
//                                                  return %loss, grad @w = %d.w
//                                                }
// The forward function stays as it is, for evaluation. In f16 the backward function starts from the loss scale instead
// of 1 (optimizer/loss_scale.h), so all its gradients are that much larger.
#pragma once
#include "passes/context.h"

namespace fusor::passes {

/// Makes @train_step from options.function, which must return a scalar float loss first. Every param that influences
/// the loss gets one `grad @param` entry in f32 (f64 for f64); one that does not is recorded as refused. An op on the
/// way that has neither a gradient rule nor an expansion is an error.
llvm::Expected<bool> gradient(ir::Module &module, PassContext &context);

/// Differentiates `function` in place: what gradient() does after it has copied the function.
llvm::Error addBackward(ir::Function &function, PassContext &context);

} // namespace fusor::passes
