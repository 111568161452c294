// Passes, then the back end: the one way from a module to a Program, for the API and every verb.
#pragma once
#include "frontend/api/device.h"
#include "passes/pipeline.h"
#include "runtime/execute/program.h"

namespace fusor::frontend {

/// What to compile and how. Start from the settings of the device: CompileRequest request(settings).
struct CompileRequest {
  CompileRequest() = default;
  explicit CompileRequest(const DeviceSettings &settings);

  passes::PipelineKind pipeline = passes::PipelineKind::infer;
  passes::PassOptions passes; // `target` is set from the device
  runtime::CompileOptions program;
  std::string dumpFolder; // modules/ and fusions.json go there; empty: nowhere
};
struct Compiled {
  std::unique_ptr<runtime::Program> program;
  std::vector<passes::Decision> decisions;
  std::vector<runtime::CompileSpan> passSpans;
  double compileMs = 0;
};

/// The size that decisions count bytes at where neither --dim nor the program says one: train's batch.
constexpr int64_t kDecisionSize = 16;
/// Symbols of the module that have no value are `size`, or as near as their range allows; " B=16 T=8" of all.
std::string fillDims(ir::SymbolValues &symbols, const ir::Module &module, int64_t size);

llvm::Expected<Compiled> compileModule(std::unique_ptr<ir::Module> module, const ChosenDevice &device,
                                       CompileRequest request);

} // namespace fusor::frontend
