// Random modules for `fusor fuzz` and tests, and the comparison of a fused program with the reference.
#pragma once
#include "ir/graph/graph.h"
#include "llvm/Support/Error.h"
#include <optional>

namespace fusor::frontend {

/// @forward over inputs of sizes with the symbol N, of up to `ops` random ops of the table, every unused value a
/// result. The same seed gives the same module. Operands are brought into the range an op's entry samples from, and ops
/// with jumps (round, comparisons) are left out, so a small error stays small.
std::unique_ptr<ir::Module> randomModule(uint64_t seed, unsigned ops);

/// How the fused program for the CPU and the float64 reference of the module as it was differ; absent where they agree.
/// Inputs are random, drawn from `seed`. Neither being able to run it is an Error.
llvm::Expected<std::optional<std::string>> findDifference(const ir::Module &module, uint64_t seed, unsigned threads);

/// Calls `fails` on ever smaller modules and returns the smallest that still fails: fewer results, fewer ops.
std::unique_ptr<ir::Module> shrink(std::unique_ptr<ir::Module> module,
                                   llvm::function_ref<bool(const ir::Module &)> fails);

} // namespace fusor::frontend
