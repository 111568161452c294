// What FP8's own state costs at the peak of memory is paid with statistics that are computed again behind it.
//
//   %y, %mean, %rstd = fusion @layer_norm(%x)              %y = fusion @layer_norm(%x)
//   ...                                     the peak       ...
//   %dx = fusion @layer_norm_grad(%dy, %x, %mean, %rstd) =>  %mean, %rstd = fusion @layer_norm(%x)
//                                                          %dx = fusion @layer_norm_grad(%dy, %x, %mean, %rstd)
//
// Scales, histories and amaxes are bytes that bf16 has not. %x waits for its gradient anyway, and costs another read:
// so the norms whose gradients come first behind the peak pay, up to a five-hundredth of the bytes that all kernels of
// the function move. gpt2 (batch 32): two norms, 0.5 MB of 12 GB, and FP8 needs no more than bf16. Sizes are those in
// the middle of the symbols' ranges.
#pragma once
#include "passes/context.h"

namespace fusor::passes {

/// Functions with FP8 state, where the target has a library for FP8 products. Behind fp8-split: order and lifetimes are
/// those of the run time.
llvm::Expected<bool> fp8Statistics(ir::Module &module, PassContext &context);

} // namespace fusor::passes
