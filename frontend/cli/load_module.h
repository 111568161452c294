// From what the user wrote (M.fir, config:NAME, --precision, --dim) to a module and the options of its passes.
#pragma once
#include "frontend/api/device.h"
#include "frontend/cli/console.h"
#include "frontend/onnx/index_bounds.h"
#include "passes/pipeline.h"

namespace fusor::frontend::cli {

struct LoadedModule {
  std::unique_ptr<ir::Module> module;
  /// From config:NAME: the module has @forward with a loss, and `train` is the pipeline unless another was asked for.
  bool isConfig = false;
  passes::PipelineKind pipeline = passes::PipelineKind::infer;
  /// Of an ONNX model: names of the results, as its file has them. Empty otherwise: values have names.
  std::vector<std::string> outputs;
  std::vector<onnx::IndexBound> indexBounds;
};
llvm::Expected<LoadedModule> loadModule(const ModuleOptions &options);
bool isOnnx(llvm::StringRef file);

/// "bf16" to the dtype. fp8 is an error of kind usage until its issue is delivered.
struct Precision {
  ir::DType dtype;
  bool fp8 = false; // FP8 linear layers with `dtype` around them
};
llvm::Expected<Precision> parsePrecision(llvm::StringRef text);
/// Options for the passes of `module`; an error where --precision or --device cannot be had. --fp8-select auto
/// measures, and says through `note` what it chose.
llvm::Expected<passes::PassOptions> passOptions(
    const CommonOptions &common, const ModuleOptions &options, const ir::Module &module,
    llvm::function_ref<void(const std::string &)> note = [](const std::string &) {});
/// Where programs run, as the common flags say.
DeviceSettings deviceSettings(const CommonOptions &common);
/// {"B=8", "T=4"} to symbol values.
llvm::Expected<ir::SymbolValues> parseDims(const std::vector<std::string> &dims, const ir::Module &module);

} // namespace fusor::frontend::cli
