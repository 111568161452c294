// The comment above each kernel: the IR it implements, what it reads and writes, what fusing saved, its launch.
#pragma once
#include "codegen/emit/kernel_builder.h"

namespace fusor::codegen {

std::string kernelHeader(const FusionBody &body, const KernelSet &set, llvm::StringRef name, llvm::StringRef step,
                         const LaunchOf &launch);

/// Fills name, ir, bytes and flops of `set`.
void describe(const FusionBody &body, KernelSet &set);

} // namespace fusor::codegen
