// One op of a compiled function: its plan for any sizes, and from it the step for given sizes.
#pragma once
#include "codegen/plan/anchors.h"
#include "runtime/cpu/isa.h"
#include "runtime/cpu/packed_weight.h"
#include "runtime/cpu/reference_step.h"
#include <variant>

namespace fusor::runtime {

struct ClusterCode;

/// A small op with a loop of its own, outside the kernel classes, see native_steps.h.
struct NativePlan {
  const ir::Op *op = nullptr;
};

/// A cluster that is no single kernel: its flat body, op by op.
struct SplitPlan {
  std::vector<std::unique_ptr<ClusterCode>> parts;
};

struct ClusterCode {
  const ir::Op *op = nullptr;
  std::string name;          // of the kernel
  std::string kind;          // "row", "contraction", ..., "native", "reference"
  codegen::FlatCluster flat; // keeps the ops of the plan alive
  std::variant<std::monostate, codegen::LoopPlan, codegen::ContractionPlan, codegen::AttentionPlan,
               codegen::ScatterPlan, codegen::MultiTensorPlan, codegen::MovementPlan, NativePlan, SplitPlan>
      plan; // monostate: the reference
  std::string whyReference;
  llvm::SmallVector<ir::Value, 8> inputs; // of the function, in the order of the plan's inputs
  std::shared_ptr<const ReferenceBody> body;
  std::string weight;                   // the constant that a product has on its right, in f32; or empty
  std::shared_ptr<PackedWeight> packed; // its copy, shared by all sizes

  bool isReference() const { return std::holds_alternative<std::monostate>(plan); }
  /// Why it, or a part of it, runs through the reference; empty where nothing does.
  std::string fallbackReason() const;
};

/// Plans `op`: a fusion, or a bare op as a cluster of one. What no class takes is split into its small ops; a small op
/// that no class takes gets the reference, and the reason.
ClusterCode lowerForCpu(const ir::Op &op, const ir::Target &target);

/// Whether result `result` may be written over operand number `operand` of the op.
bool mayOverwrite(const ClusterCode &code, unsigned result, unsigned operand);

/// `overlaps`: for each result the inputs that lie in the same memory.
std::unique_ptr<Step> instantiate(const ClusterCode &code, const ir::SymbolValues &symbols,
                                  llvm::ArrayRef<llvm::SmallVector<unsigned, 1>> overlaps, Isa isa);

} // namespace fusor::runtime
