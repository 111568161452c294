// Copies: movement ops that nothing reads through, and deterministic scatter.
#pragma once
#include "codegen/plan/anchors.h"
#include "runtime/cpu/isa.h"
#include "runtime/cpu/step.h"

namespace fusor::runtime {

class MovementStep : public Step {
public:
  /// `outputBytes` of each output; `types` of inputs and outputs agree with the plan's.
  MovementStep(const codegen::MovementPlan &plan, const ir::SymbolValues &symbols, llvm::ArrayRef<ir::DType> inputs,
               llvm::ArrayRef<ir::DType> outputs, llvm::ArrayRef<int64_t> outputBytes);
  void run(const StepMemory &memory, Workers &workers) const override;

private:
  struct Copy {
    unsigned input, output;
    llvm::SmallVector<int64_t, 4> extents, inStrides, outStrides;
    int64_t inOffset, outOffset;
    unsigned bytes; // of an element
  };
  void copy(const Copy &c, const char *from, char *to, int64_t outOffset, Workers &workers) const;

  std::vector<Copy> copies_;
  std::optional<double> fill_;
  std::optional<unsigned> startsFrom_, dynamicOffset_;
  int64_t dynamicStride_ = 0, dynamicLimit_ = 0;
  unsigned dynamicDim_ = 0;
  ir::DType fillType_ = ir::DType::f32, dynamicType_ = ir::DType::i32;
  int64_t outputBytes_ = 0;
};

class ScatterStep : public Step {
public:
  ScatterStep(const codegen::ScatterPlan &plan, const ir::SymbolValues &symbols, Isa isa);
  void run(const StepMemory &memory, Workers &workers) const override;
  int64_t sharedBytes() const override;

private:
  codegen::ScatterPlan plan_;
  int64_t count_, rows_, columns_;
  Isa isa_;
};

} // namespace fusor::runtime
