// One loop body over many tensors (adamw and its casts), and one number from many tensors (global_norm).
#pragma once
#include "codegen/plan/anchors.h"
#include "runtime/cpu/loop/loop_kernel.h"

namespace fusor::runtime {

class MultiTensorStep : public Step {
public:
  /// `inputs` and `outputs` are the dtypes of the cluster's.
  MultiTensorStep(const codegen::MultiTensorPlan &plan, const ir::SymbolValues &symbols,
                  llvm::ArrayRef<ir::DType> inputs, llvm::ArrayRef<ir::DType> outputs, Isa isa);
  void run(const StepMemory &memory, Workers &workers) const override;
  int64_t sharedBytes() const override;

private:
  struct Tensor {
    llvm::SmallVector<unsigned, 6> inputs, outputs;
    int64_t elements;
    ir::DType dtype; // of its first input
  };
  struct Piece {
    unsigned tensor;
    int64_t first, count;
  };
  void globalNorm(const StepMemory &memory, Workers &workers) const;

  std::vector<Tensor> tensors_;
  std::vector<Piece> pieces_;
  llvm::SmallVector<unsigned, 4> shared_;
  std::unique_ptr<LoopKernel> kernel_; // null for global_norm
  Isa isa_;
};

} // namespace fusor::runtime
