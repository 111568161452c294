// Random valid functions, their inputs, and a shrinker: what `fusor fuzz` and the tests of passes and back ends draw
// from.
//
//   auto module = randomModule(seed);                                 one function @random, the same for the same seed
//   auto inputs = randomInputs(*module->function("random"), sizes, seed);
//   auto small  = shrink(*module, [&](const Module &m) { return stillFails(m); });
//
// Values stay of moderate size (about 1 to 30), so that low precision and other orders of sums can be compared.
#pragma once
#include "ir/reference/reference.h"

namespace fusor::ir {

struct RandomGraphOptions {
  unsigned ops = 16;         // moves; each adds one op or a few
  bool symbolic = true;      // leading dim B in 1..8
  bool narrow = true;        // casts between f32 and bf16
  bool persistent = true;    // reads of @params and @states, updates of a @state
  bool contractions = true;  // linear, matmul, attention
  bool fp8 = false;          // quantize and dequantize
  bool random = false;       // dropout
  bool discontinuous = true; // comparisons, floor: a last bit may decide; off where back ends are compared
  bool loss = false;         // the first result is a differentiable f32[] that depends on much of the graph
};

/// A module that verifies, with the function @random.
std::unique_ptr<Module> randomModule(uint64_t seed, const RandomGraphOptions &options = {});

struct RandomInputs {
  std::vector<RefTensor> inputs;
  RefState state; // every param and state the function reads
  SymbolValues symbols;
};

/// Data for any function: floats near N(0, 1), integers in 0..6, scales of FP8 positive. An argument's data depends on
/// `seed` and its name only, so it survives shrinking. Symbols that `symbols` lacks get a value of their range.
RandomInputs randomInputs(const Function &function, uint64_t seed, SymbolValues symbols = {});

/// The smallest module found for which `fails` still holds, by cutting results, ops and operands one at a time. `fails`
/// is only asked about modules that verify; it holds for `module`.
std::unique_ptr<Module> shrink(const Module &module, llvm::function_ref<bool(const Module &)> fails);

} // namespace fusor::ir
