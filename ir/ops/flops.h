// How much a function computes, counted from its IR: for TFLOP/s and rooflines.
#pragma once
#include "ir/graph/graph.h"

namespace fusor::ir {

/// Floating point operations of a GEMM or an attention, two for a multiply and add, and of all in the body of a fusion;
/// 0 for any other op. A causal attention counts half, as nobody computes the other half.
double contractionFlops(const Op &op, const SymbolValues &symbols);
/// Of all ops of `function`.
double contractionFlops(const Function &function, const SymbolValues &symbols);

} // namespace fusor::ir
