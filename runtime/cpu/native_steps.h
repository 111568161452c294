// Small ops with loops of their own.
#pragma once
#include "ir/ops/op_def.h"
#include "runtime/cpu/isa.h"
#include "runtime/cpu/step.h"

namespace fusor::runtime {

/// The op itself, or the only one in a fusion (an iota for rope aside) that passes its operands and results on in
/// order; null when it has no step here: amax_update, arg_reduce and rope have, and with `anyDims` also reductions,
/// gather and scatter_add along dims that no kernel class takes (simple loops, slower).
const ir::Op *nativeOp(const ir::Op &op, bool anyDims);
/// For a nativeOp: inputs are its operands (but for an iota made beside it), outputs its results.
std::unique_ptr<Step> makeNativeStep(const ir::Op &op, const ir::SymbolValues &symbols, Isa isa);

} // namespace fusor::runtime
