// The float64 interpreter: the oracle of every test. It evaluates ordinary and fused functions one op at a time in
// double, rounding results whose type is narrower than f32. It is written for clarity; nothing runs it for speed.
#pragma once
#include "ir/ops/op_def.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace fusor::ir {

/// Tensors of persistent values by name.
using RefState = llvm::StringMap<RefTensor>;

struct RefResult {
  std::vector<RefTensor> results; // the function's plain results in order
  RefState updates;               // new contents of persistent values
  RefState gradients;             // `grad @w` entries
};

/// A zero tensor of `type` under `symbols`. A missing symbol is an error that names it.
llvm::Expected<RefTensor> zeros(const TensorType &type, const SymbolValues &symbols);

/// Evaluates one op, through its reference, formula or expansion.
llvm::Error evaluateOp(const OpSite &site, llvm::ArrayRef<const RefTensor *> inputs,
                       llvm::MutableArrayRef<RefTensor> outputs, const SymbolValues &symbols);

/// Sees each op when it has been evaluated, those in the bodies of fusions too. An absent operand is null.
using OpObserver = llvm::function_ref<void(const Op &op, llvm::ArrayRef<const RefTensor *> inputs,
                                           llvm::ArrayRef<RefTensor> outputs)>;

/// Runs `function` on `inputs` (one per argument; they fix the symbols) and the persistent values it reads. Derived
/// values that are missing from `state` are computed from their expression, constants from the module.
llvm::Expected<RefResult> evaluate(const Function &function, llvm::ArrayRef<RefTensor> inputs,
                                   const RefState &state = {}, SymbolValues symbols = {}, OpObserver observe = {});

} // namespace fusor::ir
