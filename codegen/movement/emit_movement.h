// Movement that nothing reads through: transposes, slices, concat, pad, the KV cache. Strided copies.
#pragma once
#include "codegen/emit/kernel_builder.h"

namespace fusor::codegen {

/// At most three kernels: fill, start from a copy of an input, copy. Errors: the plan's.
llvm::Error emitMovement(const FusionBody &body, KernelSet &set);

} // namespace fusor::codegen
