// Small models and helpers for tests of passes: built with ir::Builder, run by the float64 reference.
#pragma once
#include "ir/graph/builder.h"
#include "ir/graph/graph.h"
#include "ir/reference/initial_values.h"
#include "ir/reference/reference.h"
#include "llvm/Support/Error.h"
#include "gtest/gtest.h"
#include <memory>

namespace fusor::test {

/// x [B, 6] -> fc1 [8, 6] gelu -> fc2 [5, 8] -> cross entropy with targets t [B]; @unused has no influence.
std::unique_ptr<ir::Module> mlp();
/// One pre-LN transformer block of width 8 with 2 heads over tokens [B, 5], vocabulary 7, as in CONTRACT.md.
std::unique_ptr<ir::Module> transformer();

/// Every param and state of the module with its initial content; params that would be constant get some noise, so that
/// tests see them.
ir::RefState initialState(const ir::Module &module, uint64_t seed = 1);
/// Inputs for `function` under `symbols`: normal floats, integers in [0, classes).
std::vector<ir::RefTensor> inputsFor(const ir::Function &function, const ir::SymbolValues &symbols, int64_t classes,
                                     uint64_t seed = 7);

ir::RefResult evaluateOrFail(const ir::Function &function, llvm::ArrayRef<ir::RefTensor> inputs,
                             const ir::RefState &state);

/// The loss and every update of two @train_step are equal to the bit on the same inputs and state.
void expectSameStep(const ir::Module &one, const ir::Module &other, const ir::SymbolValues &symbols);

} // namespace fusor::test

/// An llvm::Error that must be success, with its text where it is not.
#define EXPECT_SUCCESS(EXPR)                                                                                           \
  do {                                                                                                                 \
    if (auto error_ = (EXPR)) ADD_FAILURE() << llvm::toString(std::move(error_));                                      \
  } while (0)
