// modules/ and fusions.json of a dump: the module after each pass that changed it, and what the passes decided.
#pragma once
#include "passes/pipeline.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"

namespace fusor::frontend {

/// modules/NN_PASS.fir, and modules/index.json with every pass.
class ModuleFiles {
public:
  /// Writes 00_input.fir. `folder` is that of the dump.
  static llvm::Expected<ModuleFiles> begin(std::string folder, const ir::Module &input);
  llvm::Error add(const passes::PassReport &report, const ir::Module &after);
  llvm::Error finish();

private:
  explicit ModuleFiles(std::string folder) : folder_(std::move(folder)) {}
  llvm::Error write(llvm::json::Object entry, llvm::StringRef file, const ir::Module &module);
  std::string folder_;
  llvm::StringMap<int64_t> lines_; // of the module before, each with its count
  int64_t ops_ = 0;
  llvm::json::Array index_;
};

/// fusions.json: the largest savings first, else in the order they were decided.
llvm::json::Object decisionJson(const passes::Decision &decision);
std::string decisionsJson(llvm::ArrayRef<passes::Decision> decisions);

} // namespace fusor::frontend
