// A Program on the CPU. See runtime/execute/program.h for what it does, README.md here for how.
#pragma once
#include "runtime/execute/program.h"

namespace fusor::runtime {

llvm::Expected<std::unique_ptr<Program>> compileForCpu(std::unique_ptr<ir::Module> fused, const ir::Target &target,
                                                       CompileOptions options);

} // namespace fusor::runtime
