// From a fusion to CUDA text. Nothing here needs a GPU, a driver or NVRTC.
//
//   auto set = emit(fusionOp, target);              // Expected<KernelSet>: kernels, arguments, launches, workspaces
//   auto program = kernelsOf(function, target);     // all fusions of a function, equal kernels once
//
// The text depends on the fusion alone: byte-equal from run to run, and the same for two fusions that differ in names
// only.
#pragma once
#include "codegen/emit/kernel.h"
#include "ir/graph/graph.h"
#include "ir/types/target.h"
#include "llvm/Support/Error.h"

namespace fusor::codegen {

/// The kernels of one fusion. The error is the reason why no kernel class takes it.
llvm::Expected<KernelSet> emit(const ir::Op &fusion, const ir::Target &target);

/// A kernel that launches of several fusions share.
struct DistinctKernel {
  Kernel kernel; // its name is unique among a function's kernels
  unsigned uses = 0;
  std::string ir; // what it implements
};

struct FunctionKernels {
  struct Fusion {
    const ir::Op *op;
    KernelSet set; // kernels[i] has this fusion's launch; its source is that of the distinct one
    llvm::SmallVector<unsigned, 4> kernels; // for each kernel of the set, its number in `kernels` below
  };
  struct Refused {
    const ir::Op *op;
    std::string reason;
  };
  std::vector<DistinctKernel> kernels; // in order of first launch
  std::vector<Fusion> fusions;         // in execution order
  std::vector<Refused> refused;        // fusions without a kernel
};

FunctionKernels kernelsOf(const ir::Function &function, const ir::Target &target);
/// The same over all functions of a module: a kernel that two of them use is there once.
FunctionKernels kernelsOf(const ir::Module &module, const ir::Target &target);

} // namespace fusor::codegen
