// At the peak of memory, a kernel that quantises leaves a copy to a kernel of its own.
//
//   %d, %d.t = fusion @gelu_grad_fp8_cast_transpose ...      %d = fusion @gelu_grad_fp8_cast ...    the peak: fewer
//   results %dx = fusion @linear(%d, @w.fp8.t)                  =>   %dx = fusion @linear(%d, @w.fp8.t) %dw = fusion
//   @linear(%d.t, %y)                           %d.t = fusion @transpose(%d)           what waited is free now
//                                                            %dw = fusion @linear(%d.t, %y)
//
// And one that needs nothing of the kernel but what that reads goes in front of it, with its reader:
//
//   %q.t, %d = fusion @linear_gelu_grad_gelu_transpose ...   %q.t = fusion @gelu_fp8_cast_transpose(%pre)
//   %dw = fusion @linear(%dy.t, %q.t)                   =>   %dw = fusion @linear(%dy.t, %q.t)
//                                                            %d = fusion @linear_gelu_grad ...
//
// Each costs another read, so it is done at the peak alone, and only where fewer bytes are alive at the new one: of
// many equal layers that is one. bf16 has no such copies. Sizes are those in the middle of the symbols' ranges.
#pragma once
#include "passes/context.h"

namespace fusor::passes {

/// Every function, where the target has a library for FP8 products. Behind schedule: order and lifetimes are those of
/// the run time.
llvm::Expected<bool> fp8Split(ir::Module &module, PassContext &context);

} // namespace fusor::passes
