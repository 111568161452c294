// What fusor::Module points to.
#pragma once
#include "frontend/api/fusor.h"
#include "ir/graph/graph.h"
#include "passes/pipeline.h"

namespace fusor::frontend {

struct ModuleState {
  Error error;                        // then `module` is null
  std::unique_ptr<ir::Module> module; // before any pass
  passes::PipelineKind pipeline = passes::PipelineKind::infer;
  passes::PassOptions options;

  static Module handle(std::shared_ptr<const ModuleState> state);
  static const ModuleState &of(const Module &module) { return *module.state_; }
  static Module failed(Error error);

  /// A copy after the passes, for `target`; the options are those given with `target`.
  llvm::Expected<std::unique_ptr<ir::Module>> lowered(const ir::Target &target) const;
};

} // namespace fusor::frontend
