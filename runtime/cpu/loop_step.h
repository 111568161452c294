// Clusters that are one loop: pointwise, row and column kernels.
#pragma once
#include "runtime/cpu/loop/loop_kernel.h"

namespace fusor::runtime {

class LoopStep : public Step {
public:
  LoopStep(const codegen::LoopPlan &plan, const ir::SymbolValues &symbols, LoopKernel::Options options)
      : kernel_(plan, symbols, withFlatness(plan, options)) {}
  void run(const StepMemory &memory, Workers &workers) const override { kernel_.run(memory, workers); }
  int64_t sharedBytes() const override { return kernel_.sharedBytes(); }

private:
  static LoopKernel::Options withFlatness(const codegen::LoopPlan &plan, LoopKernel::Options options) {
    options.isFlat = LoopKernel::canBeFlat(plan);
    return options;
  }
  LoopKernel kernel_;
};

} // namespace fusor::runtime
