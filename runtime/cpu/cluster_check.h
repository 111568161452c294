// CompileOptions::check: a step's results against its body in the float64 reference, on live data.
#pragma once
#include "runtime/cpu/cluster_code.h"
#include "runtime/execute/non_finite.h"

namespace fusor::runtime {

class ClusterCheck {
public:
  /// Before the step runs: it may overwrite its inputs.
  ClusterCheck(const ClusterCode &code, const StepMemory &memory, const ir::SymbolValues &symbols);
  /// After it ran. The error (CheckError) names kernel, result, element and both values.
  llvm::Error compare(llvm::StringRef function, const StepMemory &memory) const;

  /// After it ran: the op of its body that makes the first NaN or Inf, where a result has one and no input.
  std::optional<NonFiniteOp> nonFinite(llvm::StringRef function, const StepMemory &memory) const;

private:
  const ClusterCode &code_;
  ir::SymbolValues symbols_;
  std::vector<ir::RefTensor> inputs_;
};

/// How far a result of `dtype` may be from the reference, relative to the largest |value| of the tensor.
double checkTolerance(ir::DType dtype);
/// The same for a result that `body` computes: the tolerance of the narrowest dtype on the way to it.
double bodyTolerance(const ir::Block &body, ir::DType result);
/// `tolerance` as a difference of elements of a tensor that the reference has as `want`.
double allowedDifference(const ir::RefTensor &want, double tolerance);

} // namespace fusor::runtime
