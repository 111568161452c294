#include "frontend/cli/load_module.h"
#include "frontend/api/config_file.h"
#include "frontend/api/device.h"
#include "frontend/api/fp8_select.h"
#include "frontend/onnx/import.h"
#include "frontend/text/parser.h"
#include "llvm/Support/MemoryBuffer.h"

namespace fusor::frontend::cli {

bool isOnnx(llvm::StringRef file) { return file.endswith(".onnx"); }

llvm::Expected<LoadedModule> loadModule(const ModuleOptions &options) {
  LoadedModule loaded;
  llvm::StringRef file = options.file;
  if (isOnnx(file)) {
    auto imported = onnx::importModel(file);
    if (!imported) return imported.takeError();
    loaded.module = std::move(imported->module);
    loaded.outputs = std::move(imported->outputs);
  } else if (file.consume_front("config:")) {
    auto config = loadConfig(file);
    if (!config) return config.takeError();
    loaded.module = nn::gptForward(*config, "minigpt");
    loaded.isConfig = true;
    loaded.pipeline = passes::PipelineKind::train;
  } else {
    auto text = llvm::MemoryBuffer::getFile(file, /*IsText=*/true);
    if (!text) return inputError("cannot read '{0}': {1}", file, text.getError().message());
    auto module = parseModule((*text)->getBuffer(), file);
    if (!module) return module.takeError();
    loaded.module = std::move(*module);
  }
  if (options.pipelineGiven) loaded.pipeline = *passes::parsePipelineKind(options.pipeline);
  if (!options.function.empty() && !loaded.module->function(options.function))
    return inputError("'{0}' has no function @{1}", options.file, options.function);
  return loaded;
}

llvm::Expected<Precision> parsePrecision(llvm::StringRef text) {
  if (text == "fp8") return Precision{ir::DType::bf16, true};
  return Precision{*ir::parseDType(text)}; // the command line takes no other words
}

llvm::Expected<passes::PassOptions> passOptions(const CommonOptions &common, const ModuleOptions &options,
                                                const ir::Module &module,
                                                llvm::function_ref<void(const std::string &)> note) {
  passes::PassOptions result;
  auto precision = parsePrecision(options.precision);
  if (!precision) return precision.takeError();
  result.function = options.function;
  result.precision = precision->dtype;
  if (precision->fp8)
    result.fp8.emplace().select = options.fp8Select;
  else if (options.fp8Select != "all")
    return failure(ErrorKind::usage, "--fp8-select needs --precision fp8");
  result.fp8Weights = !options.weights.empty();
  for (const std::string &rule : common.disabledRules) result.disabledRules.insert(rule);
  result.fuel = common.fuel;
  bool measures = precision->fp8 && options.fp8Select == "auto";
  if (!measures && (common.device == "auto" || common.device == "cpu")) return result; // passes need no device
  auto device = chooseDevice(common.device, deviceSettings(common).tier);
  if (!device) return device.takeError();
  if (measures) {
    auto symbols = parseDims(options.dims, module);
    if (!symbols) return symbols.takeError();
    constexpr int64_t kBatch = 16; // train's default
    if (module.symbols().count("B")) symbols->try_emplace("B", kBatch);
    auto selection = selectFp8(module, result, *symbols, deviceSettings(common), *device);
    if (!selection) return selection.takeError();
    result.fp8->inBf16 = std::move(selection->inBf16);
    for (const std::string &text : selection->notes) note(text);
  }
  if (common.device == "auto" || common.device == "cpu") return result;
  result.target = device->target;
  result.target.hasCublasLt &= common.blas != "own";
  return result;
}

DeviceSettings deviceSettings(const CommonOptions &common) {
  DeviceSettings settings{.device = common.device,
                          .threads = common.threads,
                          .strict = common.strict,
                          .check = common.check,
                          .bisect = common.bisect,
                          .ownGemm = common.blas == "own",
                          .cacheDir = common.cache,
                          .dumpDir = common.dump,
                          .dumpInputs = common.dumpInputs,
                          .disabledRules = common.disabledRules,
                          .fuel = common.fuel};
  if (common.archTier == "simt") settings.tier = ir::ArchTier::simt;
  if (common.archTier == "sm80") settings.tier = ir::ArchTier::sm80;
  return settings;
}

llvm::Expected<ir::SymbolValues> parseDims(const std::vector<std::string> &dims, const ir::Module &module) {
  ir::SymbolValues values;
  for (llvm::StringRef dim : dims) {
    auto [name, number] = dim.split('=');
    int64_t value = 0;
    if (number.getAsInteger(10, value) || value < 0)
      return failure(ErrorKind::usage, "--dim needs NAME=NUMBER, is '{0}'", dim);
    auto symbol = module.symbols().find(name.str());
    if (symbol == module.symbols().end()) return inputError("--dim {0}: the module has no symbol {1}", dim, name);
    if (value < symbol->second.low || value > symbol->second.high)
      return inputError("--dim {0}: {1} is declared in {2}..{3}", dim, name, symbol->second.low, symbol->second.high);
    values[name] = value;
  }
  return values;
}

} // namespace fusor::frontend::cli
