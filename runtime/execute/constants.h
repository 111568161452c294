// Values of ops without operands (iota, constant): numbers that only the sizes decide, computed when a function is
// planned.
#pragma once
#include "passes/memory/memory_plan.h"

namespace fusor::runtime {

/// Writes them to `constants`, `plan.constantBytes` bytes of the host, at their places.
llvm::Error fillConstants(const ir::Function &function, const passes::MemoryPlan &plan, const ir::SymbolValues &symbols,
                          char *constants);

} // namespace fusor::runtime
