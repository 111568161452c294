// Runs passes over a module: verifies around each, prints, times, and says which pass to blame.
#pragma once
#include "passes/context.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace fusor::passes {

/// Changes the module and returns whether it did. An Error is the user's mistake; a pass's own mistakes are FUSOR_BUG.
using PassFunction = llvm::Expected<bool> (*)(ir::Module &, PassContext &);

struct Pass {
  llvm::StringRef name;
  PassFunction run;
  llvm::StringRef why; // why it stands where it stands, one line
};

/// What happened in one pass.
struct PassReport {
  unsigned index; // 0 for the first pass that ran
  llvm::StringRef name;
  bool changed;
  double timeMs;
};
/// Called after each pass with the module as the pass left it: for --print-after, --dump and progress.
using PassObserver = llvm::function_ref<void(const PassReport &, const ir::Module &)>;

/// Runs `passes` in order. The module is verified first and after each pass: what does not verify at the start is an
/// Error, later it is a bug of the pass, which is named.
llvm::Error runPasses(
    ir::Module &module, llvm::ArrayRef<Pass> passes, PassContext &context,
    PassObserver observer = [](const PassReport &, const ir::Module &) {});

/// "// after simplify (unchanged), 0.2 ms" and, where it changed, the module.
std::string printed(const PassReport &report, const ir::Module &module);

} // namespace fusor::passes
