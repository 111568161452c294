// The files of a dump folder that describe a program: plan.json (where values live), gemms.json (each GEMM of a
// function), trace.json (the last run, for chrome://tracing and Perfetto). Modules and fusions.json come from
// compile_module.h, kernels from the back end.
#pragma once
#include "runtime/execute/program.h"

namespace fusor::frontend {

/// Writes them for one bucket of `function`. A trace needs CompileOptions::profile and a run before.
llvm::Error dumpProgram(runtime::Program &program, llvm::StringRef function, const ir::SymbolValues &symbols,
                        llvm::StringRef folder);

} // namespace fusor::frontend
