// One kernel for many tensors: AdamW with the casts of new weights, and the norm of all gradients.
#pragma once
#include "codegen/emit/kernel_builder.h"

namespace fusor::codegen {

/// Errors: the plan's; tensors of symbolic size; a norm over several dtypes.
llvm::Error emitMultiTensor(const FusionBody &body, KernelSet &set);

} // namespace fusor::codegen
