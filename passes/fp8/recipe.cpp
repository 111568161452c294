#include "passes/fp8/recipe.h"
#include "passes/context.h"
#include "passes/optimizer/derive.h"
#include "llvm/Support/Regex.h"

namespace fusor::passes {
namespace {

constexpr int64_t kLongestHistory = 65536, kLargestMargin = 30;

llvm::Error wrong(std::string message, std::string hint) {
  return llvm::make_error<PassError>(ir::Location(), std::move(message), std::move(hint));
}

} // namespace

llvm::Error checkRecipe(const DelayedScaling &recipe) {
  if (recipe.amaxHistory < 1 || recipe.amaxHistory > kLongestHistory)
    return wrong(llvm::formatv("an amax history has 1 to {0} steps, is given {1}", kLongestHistory, recipe.amaxHistory),
                 "16 follows changes quickly, 1024 is Transformer Engine's default");
  if (recipe.margin < 0 || recipe.margin > kLargestMargin)
    return wrong(llvm::formatv("the margin is 0 to {0}, is given {1}", kLargestMargin, recipe.margin),
                 "scales are divided by 2^margin");
  std::string problem;
  if (recipe.select != "all" && !llvm::Regex(recipe.select).isValid(problem))
    return wrong(llvm::formatv("'{0}' is no regular expression: {1}", recipe.select, problem),
                 "layers are selected by name, \"blocks.[0-3].fc1\", or all");
  return llvm::Error::success();
}

std::string layerOf(llvm::StringRef weight) {
  weight.consume_back(".weight");
  return weight.str();
}

std::string scaleName(llvm::StringRef tensor) { return (tensor + ".scale").str(); }
std::string historyName(llvm::StringRef tensor) { return (tensor + ".amax_history").str(); }

llvm::StringRef tensorOf(llvm::StringRef scale) { return scale.consume_back(".scale") ? scale : llvm::StringRef(); }

std::string inverseOfScale(ir::Module &module, llvm::StringRef scale) {
  return derivedValue(module, "reciprocal", scale.str(), {}, module.persistent(scale)->type, scale + "_inv");
}

} // namespace fusor::passes
