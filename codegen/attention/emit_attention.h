// Attention, forward and backward, reading q, k, v out of packed projections and writing packed gradients.
#pragma once
#include "codegen/emit/kernel_builder.h"
#include "codegen/plan/anchors.h"
#include "ir/types/target.h"

namespace fusor::codegen {

/// Forward: one kernel. Backward: two on tensor cores (dq with the row dots, dk with dv), three on CUDA cores. Errors: the plan's; f64; a kv_length narrower than
/// i32.
llvm::Error emitAttention(const FusionBody &body, const ir::Target &target, KernelSet &set);

/// Empty where the tensor-core kernels of codegen/device/attention_mma.cuh take `plan` on `target`, otherwise why they
/// do not; the CUDA-core kernels take everything. The kernel's header says it too.
std::string whyNoTensorCores(const AttentionPlan &plan, const ir::Target &target);

} // namespace fusor::codegen
