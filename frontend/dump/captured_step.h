// kernels/NAME/inputs/ and kernel.fir: what a kernel read and wrote in one run, enough to run it again by itself.
//
//   kernel.fir                       func @NAME, the op that the kernel belongs to: `fusor run kernel.fir --inputs
//   inputs
//                                    --expect inputs` runs it anywhere
//   inputs/input_0_ln1.bf16.npy      its operands before the step, output_0_... its results behind it
//   inputs/inputs.json               sizes, and the launches of the step: kernel, grid, block, what each argument is
#pragma once
#include "frontend/dump/dump_folder.h"
#include "runtime/execute/program.h"

namespace fusor::frontend {

/// Writes both for kernel `kernel` of the description, which the captured step launches.
llvm::Error writeCapturedStep(const DumpFolder &folder, const runtime::Description &description, unsigned kernel,
                              const runtime::StepContent &content);

/// A module with the op as its only function, called `name`; for an op without operands in persistent values of its
/// own.
std::unique_ptr<ir::Module> moduleOfOp(const ir::Op &op, llvm::StringRef name);

} // namespace fusor::frontend
