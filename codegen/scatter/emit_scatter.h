// scatter_add along the first axis: gradients of embeddings and of row gathers. Deterministic, see
// codegen/device/gather.cuh.
#pragma once
#include "codegen/emit/kernel_builder.h"

namespace fusor::codegen {

/// Four kernels: count, place, order, add. Errors: the plan's; updates that are not floats of at most 32 bits.
llvm::Error emitScatter(const FusionBody &body, KernelSet &set);

} // namespace fusor::codegen
