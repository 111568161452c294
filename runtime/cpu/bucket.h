// A function with all sizes known: its memory plan, its steps, and where each step's operands are.
#pragma once
#include "passes/memory/memory_plan.h"
#include "runtime/cpu/aligned_memory.h"
#include "runtime/cpu/cluster_code.h"

namespace fusor::runtime {

struct BucketStep {
  const ClusterCode *code;
  std::unique_ptr<Step> step;
  llvm::SmallVector<unsigned, 8> inputs, outputs; // buffers of the memory plan
  int64_t bytes = 0;                              // read and written once
  double flops = 0;                               // of products
};

struct Bucket {
  ir::SymbolValues symbols;
  passes::MemoryPlan memory;
  std::vector<BucketStep> steps;
  int64_t sharedBytes = 0; // of work space behind the arena
  AlignedMemory constants; // values of ops without operands
};

/// Plans `function`, whose ops have the given code (views and constants have none). Errors name what has no size.
llvm::Expected<std::unique_ptr<Bucket>> makeBucket(const ir::Function &function,
                                                   llvm::ArrayRef<std::unique_ptr<ClusterCode>> code,
                                                   const ir::SymbolValues &symbols, Isa isa);

} // namespace fusor::runtime
