// What a function computes and moves, counted from its IR: for TFLOP/s and the roofline of `fusor bench`.
#pragma once
#include "ir/graph/graph.h"

namespace fusor::frontend {

/// Floating point operations of all GEMMs and attentions of `function`, two for a multiply and add; fusions' bodies
/// included. A causal attention counts half, as nobody computes the other half.
double contractionFlops(const ir::Function &function, const ir::SymbolValues &symbols);

} // namespace fusor::frontend
