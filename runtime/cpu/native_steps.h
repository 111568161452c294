// Small ops with loops of their own.
#pragma once
#include "ir/ops/op_def.h"
#include "runtime/cpu/step.h"

namespace fusor::runtime {

/// The op itself, or the only one in a fusion that passes its operands and results on in order; null when it has no
/// step here.
const ir::Op *nativeOp(const ir::Op &op);
/// For a nativeOp: inputs are its operands, outputs its results.
std::unique_ptr<Step> makeNativeStep(const ir::Op &op, const ir::SymbolValues &symbols);

} // namespace fusor::runtime
