// Which passes run, in which order, and why there. pipeline.cpp is the one page.
#pragma once
#include "passes/runner.h"

namespace fusor::passes {

enum class PipelineKind : uint8_t {
  infer, // every function, as it is called
  train, // options.function becomes @train_step (and @accumulate); it stays, for evaluation
};
std::optional<PipelineKind> parsePipelineKind(llvm::StringRef name); // "infer", "train"

/// The passes of a pipeline, in order.
llvm::ArrayRef<Pass> pipeline(PipelineKind kind);
/// Every pass there is, once.
llvm::ArrayRef<Pass> allPasses();
/// The pass called `name`, or null.
const Pass *findPass(llvm::StringRef name);

llvm::Error runPipeline(
    ir::Module &module, PipelineKind kind, PassContext &context,
    PassObserver observer = [](const PassReport &, const ir::Module &) {});
/// Runs the passes called `names`; one that does not exist is an error that lists those that do.
llvm::Error runPasses(
    ir::Module &module, llvm::ArrayRef<std::string> names, PassContext &context,
    PassObserver observer = [](const PassReport &, const ir::Module &) {});

} // namespace fusor::passes
