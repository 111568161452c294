// Small ops with loops of their own.
#pragma once
#include "ir/ops/op_def.h"
#include "runtime/cpu/step.h"

namespace fusor::runtime {

bool hasNativeStep(const ir::Op &op);
/// Inputs are the op's operands, outputs its results.
std::unique_ptr<Step> makeNativeStep(const ir::Op &op, const ir::SymbolValues &symbols);

} // namespace fusor::runtime
