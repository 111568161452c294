// fusion: ops become clusters, each one kernel (or a kernel and its finishing step).
//
//   %pre = linear %x, @w, bias = @b                        %pre, %g = fusion @linear_gelu(%x, %w = @w, %b = @b) {kind =
//   contraction} { %g   = gelu %pre                            ->           %pre = linear %x, %w, bias = %b
//   ... %pre is used again by gelu_grad                       %g = gelu %pre
//                                                             yield %pre, %g }
//
// Two clusters become one when (1) that saves bytes: what lies between them is not written, or a shared input is read
// once; (2) codegen accepts the merged body, i.e. there is a plan for it (codegen/plan); (3) no third cluster lies on a
// path between them. The pair that saves most is merged first. Every op ends in a fusion, alone if need be, but for
// views, generators and the return. Nothing is recomputed and no rounding is added or dropped: types inside the body
// are as they were.
#pragma once
#include "passes/context.h"

namespace fusor::passes {

llvm::Expected<bool> fusion(ir::Module &module, PassContext &context);

/// "linear_gelu": the ops in order, casts and repeats left out, at most five.
std::string chainName(llvm::ArrayRef<ir::Op *> ops);

/// Name and kind of a fusion whose body is new. False where no kernel takes it.
bool nameFusion(ir::Op &fusion, const ir::Target &target);

} // namespace fusor::passes
