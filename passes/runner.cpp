#include "passes/runner.h"
#include "ir/graph/bug.h"
#include "ir/verify/verify.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>

namespace fusor::passes {

llvm::Error runPasses(ir::Module &module, llvm::ArrayRef<Pass> passes, PassContext &context, PassObserver observer) {
  if (auto error = ir::verify(module)) return error;
  llvm::StringRef print = context.options().printAfter;
  for (unsigned i = 0; i < passes.size(); ++i) {
    const Pass &pass = passes[i];
    ir::BugContext doing(llvm::formatv("pass '{0}' of module '{1}'; reproduce with: fusor opt FILE --passes {0}",
                                       pass.name, module.name())
                             .str());
    auto start = std::chrono::steady_clock::now();
    auto changed = pass.run(module, context);
    if (!changed) return changed.takeError();
    std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    if (auto error = ir::verify(module))
      FUSOR_BUG("pass '{0}' left an invalid module: {1}", pass.name, llvm::toString(std::move(error)));
    PassReport report{i, pass.name, *changed, time.count()};
    if (print == "all" || print == pass.name) llvm::errs() << printed(report, module);
    observer(report, module);
  }
  return llvm::Error::success();
}

std::string printed(const PassReport &report, const ir::Module &module) {
  std::string head =
      llvm::formatv("// after {0}{1}, {2:F1} ms\n", report.name, report.changed ? "" : " (unchanged)", report.timeMs)
          .str();
  return report.changed ? head + module.str() + "\n" : head;
}

} // namespace fusor::passes
