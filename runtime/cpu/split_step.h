// A cluster that is no single kernel, run as the small ops of its flat body with memory of their own.
#pragma once
#include "runtime/cpu/bucket.h"

namespace fusor::runtime {

class SplitStep : public Step {
public:
  SplitStep(const ir::Function &flat, llvm::ArrayRef<std::unique_ptr<ClusterCode>> parts,
            const ir::SymbolValues &symbols, Isa isa);
  void run(const StepMemory &memory, Workers &workers) const override;
  int64_t sharedBytes() const override;

private:
  std::unique_ptr<Bucket> bucket_;
};

} // namespace fusor::runtime
