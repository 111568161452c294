// The peak of a fused function's memory, as the run time will plan it.
#pragma once
#include "passes/memory/memory_plan.h"
#include <vector>

namespace fusor::passes {

/// Results of a fusion with the operand each may be written over.
using OverwritePairs = std::vector<std::pair<unsigned, unsigned>>;
OverwritePairs overwritableBy(const ir::Op &fusion);

/// The plan of a function of fusions that write over what they may.
llvm::Expected<MemoryPlan> planInPlace(const ir::Function &function, const ir::SymbolValues &symbols);

/// The op at which most bytes of the arena are alive. `ops`: how many the function has.
unsigned peakOf(const MemoryPlan &plan, size_t ops);

} // namespace fusor::passes
