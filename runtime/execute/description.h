// What a compiled function is made of, launch by launch: what a dump says about it.
//
//   auto described = program.describe("train_step", symbols);       // after a run with these sizes
//   described->launches[i]  goes with  program.stepTimes()[i]        // of a profiled run
//   described->steps[launch.step].op                                // the fusion that it belongs to
//   described->kernels[*launch.kernel].code.source                  // its CUDA text
#pragma once
#include "codegen/emit/kernel.h"
#include "ir/graph/graph.h"
#include "passes/memory/memory_plan.h"
#include <optional>

namespace fusor::runtime {

/// A kernel text; several steps may launch it. On a CPU nothing runs it: it is what a GPU of the simt tier would run.
struct DescribedKernel {
  codegen::Kernel code;
  std::string edited; // the text that ran in its place, `fusor replay --install`; empty mostly
  std::string cubin, ptx; // with CompileOptions::forDump, on a GPU; no cubin where it is newer than the compiler
  // Of the loaded image, where the driver says: a thread's registers and local memory, a block's static shared memory.
  std::optional<int> registers, spillBytes, staticSharedBytes;
};

/// One op of the function that has code: a fusion, or an op that no fusion took.
struct DescribedStep {
  const ir::Op *op = nullptr;
  std::string name, kind;                 // of its kernels, as in KernelInfo
  codegen::KernelSet set;                 // no kernels where none is made for it
  llvm::SmallVector<unsigned, 4> kernels; // numbers of the set's kernels in Description::kernels
  llvm::SmallVector<ir::Value, 8> inputs; // of the function, in the order of the kernels' inputs
  std::string algorithm;                  // of a library's product: "cuBLASLt: ..."
  std::string fallback;                   // why it has no kernel and the reference computes it; empty mostly
  int64_t bytes = 0;                      // read and written once
  double flops = 0;                       // of products
};

/// One entry of the launch list.
struct DescribedLaunch {
  enum class Kind : uint8_t { kernel, library, copy, host } kind = Kind::kernel;
  static constexpr unsigned kBehindAllSteps = ~0u; // a copy of results or of new state
  unsigned step = 0;
  std::string name;
  /// Number in Description::kernels: the kernel launched; on a CPU the first that a GPU would launch.
  std::optional<unsigned> kernel;
  int64_t grid = 0;  // of a kernel, in this bucket; the rest is in its code
  int64_t bytes = 0; // of a copy
};

struct Description {
  std::string device; // "NVIDIA H200", "cpu"
  const ir::Function *function = nullptr;
  ir::SymbolValues symbols;
  std::vector<DescribedKernel> kernels;
  std::vector<DescribedStep> steps;
  std::vector<DescribedLaunch> launches;
  passes::MemoryPlan memory;
};

} // namespace fusor::runtime
