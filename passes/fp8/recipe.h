// What the FP8 passes share: whether a recipe makes sense, and how its states are called.
#pragma once
#include "ir/graph/graph.h"
#include "passes/options.h"
#include "llvm/Support/Error.h"

namespace fusor::passes {

/// A PassError that says which field is wrong, and what it may be.
llvm::Error checkRecipe(const DelayedScaling &recipe);

/// The layer a weight belongs to: "blocks.0.fc1" of "blocks.0.fc1.weight".
std::string layerOf(llvm::StringRef weight);
/// The states of a tensor, "blocks.0.fc1.input".
std::string scaleName(llvm::StringRef tensor);
std::string historyName(llvm::StringRef tensor);
/// The tensor whose scale is called `scale`; empty where that is no name of a scale.
llvm::StringRef tensorOf(llvm::StringRef scale);
/// The name of `derived @SCALE_inv = reciprocal @SCALE`, which is declared where it is not there.
std::string inverseOfScale(ir::Module &module, llvm::StringRef scale);

} // namespace fusor::passes
