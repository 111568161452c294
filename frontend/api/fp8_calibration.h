// The first scales of an FP8 run, measured: what the amaxes of its first run would be if nothing were quantised.
#pragma once
#include "frontend/api/compile_module.h"

namespace fusor::frontend {

/// Sets the scales of `program` to what its recipe makes of the amaxes of one run of `function` on `inputs`, in bf16:
/// "train_step", or a function for inference. It is run by a program of its own, made of `source` and `request` as
/// `program` was, with the parameters that `program` has now; parameters, optimizer states and histories of `program`
/// stay as they are. A tensor whose amax is 0 keeps its scale.
llvm::Error calibrateFp8(runtime::Program &program, std::unique_ptr<ir::Module> source, const ChosenDevice &device,
                         CompileRequest request, llvm::StringRef function, llvm::ArrayRef<runtime::TensorView> inputs);

} // namespace fusor::frontend
