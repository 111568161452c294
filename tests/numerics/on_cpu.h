// A module run by the CPU backend, with the tensors of the reference: what tests compare with ir::evaluate.
#pragma once
#include "ir/random/random_graph.h"
#include "runtime/execute/program.h"

namespace fusor::tests {

struct CpuOptions {
  unsigned threads = 1;
  bool fused = true; // through layout and fusion; else each op is its own cluster
};

struct CpuRun {
  ir::RefResult result;
  std::vector<runtime::Fallback> fallbacks;
};

/// Runs `module`'s only function on `inputs`. Params and states that `inputs.state` lacks are 0.
llvm::Expected<CpuRun> runOnCpu(const ir::Module &module, const ir::RandomInputs &inputs, CpuOptions options = {});

} // namespace fusor::tests
