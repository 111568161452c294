// The files of a dump that describe one function of a program, see docs/dump.md.
#pragma once
#include "frontend/dump/dumped_program.h"

namespace fusor::frontend {

/// steps.json: the launches in order.
llvm::json::Array stepsJson(const DumpedProgram &dumped);

/// gemms.json: each product, its sizes, who computes it and in what.
llvm::json::Array gemmsJson(const DumpedProgram &dumped);

/// kernels/NAME/kernel.json: kernel `number` of the description.
llvm::json::Object kernelJson(const DumpedProgram &dumped, unsigned number);

/// trace.json: what compiling did by thread, then the launches of a step.
llvm::json::Object traceJson(const DumpedProgram &dumped, llvm::ArrayRef<runtime::CompileSpan> spans);

} // namespace fusor::frontend
