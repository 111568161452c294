// Attention, forward and backward, reading q, k, v out of packed projections and writing packed gradients.
#pragma once
#include "codegen/emit/kernel_builder.h"

namespace fusor::codegen {

/// Forward: one kernel. Backward: three (row dots, dq, dk with dv). Errors: the plan's; f64; a kv_length narrower than
/// i32.
llvm::Error emitAttention(const FusionBody &body, KernelSet &set);

} // namespace fusor::codegen
