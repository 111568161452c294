// GEMMs with a fused epilogue: bias, activation and its derivative, residual, casts, several outputs, a bias gradient.
#pragma once
#include "codegen/emit/kernel_builder.h"

namespace fusor::codegen {

/// One kernel where the epilogue has at most one column sum (and a second one to finish that); else the product goes
/// through memory and a loop follows. Errors: the plan's, or quantised operands.
llvm::Error emitContraction(const FusionBody &body, const ir::Target &target, KernelSet &set);

} // namespace fusor::codegen
