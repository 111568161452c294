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

/// How far a result that is stored as `dtype` may be from the reference, relative to the largest |value| of the tensor:
/// for rounding it, and a handful of f32 operations before. It does not depend on what is summed.
double checkTolerance(ir::DType dtype);
/// The same for f32 sums of `terms` terms, beside that.
double sumTolerance(double terms);
/// The terms that are summed on the way to one result of `op`, over all ops of its body; 0 where nothing is summed.
double summedTerms(const ir::Op &op, const ir::SymbolValues &symbols);
double summedTerms(const ir::Block &body, const ir::SymbolValues &symbols);
/// For a result that `body` computes: the tolerance of the narrowest dtype on the way to it, and of its sums.
double bodyTolerance(const ir::Block &body, ir::DType result, const ir::SymbolValues &symbols);
/// `tolerance` as a difference of elements of a tensor that the reference has as `want`.
double allowedDifference(const ir::RefTensor &want, double tolerance);

} // namespace fusor::runtime
