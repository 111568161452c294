#include "tests/onnx/model_folder.h"
#include "frontend/api/compile_module.h"
#include "passes/pipeline.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <algorithm>

namespace fusor::tests {

using frontend::HostTensor;

std::string sharedOnnx(llvm::StringRef name) {
  std::string path = (FUSOR_SOURCE_DIR "/../shared/onnx/" + name).str();
  return llvm::sys::fs::exists(path) ? path : "";
}

std::vector<std::string> foldersIn(llvm::StringRef folder, llvm::StringRef prefix) {
  std::vector<std::string> names;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (llvm::sys::fs::is_directory(it->path()) && llvm::sys::path::filename(it->path()).startswith(prefix))
      names.push_back(it->path());
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

llvm::Expected<std::vector<HostTensor>> inputsOf(const onnx::Declared &declared, llvm::StringRef set) {
  std::vector<HostTensor> inputs;
  for (unsigned i = 0; i < declared.inputs.size(); ++i) {
    const auto &[name, dtype] = declared.inputs[i];
    std::string stem = frontend::tensorFileStem("input", i, name), path = frontend::findTensorFile(set, stem);
    if (!dtype || path.empty())
      return llvm::createStringError(llvm::inconvertibleErrorCode(), "%s has no %s", set.str().c_str(), stem.c_str());
    auto tensor = frontend::readTensorFile(path, *dtype);
    if (!tensor) return tensor.takeError();
    inputs.push_back(std::move(*tensor));
  }
  return inputs;
}

} // namespace

llvm::Expected<std::vector<HostTensor>> runModelFolder(llvm::StringRef model, llvm::StringRef set,
                                                       passes::PassOptions passOptions) {
  const std::string file = (model + "/model.onnx").str();
  auto declared = onnx::readDeclared(file);
  if (!declared) return declared.takeError();
  auto inputs = inputsOf(*declared, set);
  if (!inputs) return inputs.takeError();
  onnx::ImportOptions options;
  options.content = [&](unsigned i) -> std::optional<onnx::Data> {
    const HostTensor &t = (*inputs)[i];
    return onnx::Data{t.dtype, t.shape, std::make_shared<const std::vector<char>>(t.bytes)};
  };
  for (HostTensor &t : *inputs) options.fixSizes |= t.elements() == 0;
  auto imported = onnx::importModel(file, options);
  if (!imported && !options.fixSizes) {
    llvm::consumeError(imported.takeError());
    options.fixSizes = true;
    imported = onnx::importModel(file, options);
  }
  if (!imported) return imported.takeError();
  auto device = frontend::chooseDevice("cpu");
  if (!device) return device.takeError();
  frontend::DeviceSettings settings;
  settings.device = "cpu", settings.threads = 1;
  frontend::CompileRequest request(settings);
  request.passes.disabledRules = passOptions.disabledRules;
  auto compiled = frontend::compileModule(std::move(imported->module), *device, std::move(request));
  if (!compiled) return compiled.takeError();
  runtime::Program &program = *compiled->program;
  if (auto error = program.initialize(0)) return error;
  std::vector<HostTensor> outputs;
  std::vector<runtime::TensorView> inputViews, outputViews;
  std::vector<onnx::IndexElements> elements;
  for (HostTensor &t : *inputs) inputViews.push_back(t.view()), elements.push_back({t.dtype, t.bytes});
  auto symbols = program.bindSymbols("forward", inputViews);
  if (!symbols) return symbols.takeError();
  const ir::Function &function = *program.module().function("forward");
  if (auto error = onnx::checkIndexBounds(imported->indexBounds, function, elements, *symbols)) return error;
  auto types = program.resultTypes("forward", *symbols);
  if (!types) return types.takeError();
  for (const runtime::TensorView &type : *types)
    outputs.push_back({type.dtype, type.shape, std::vector<char>(type.bytes())});
  for (HostTensor &t : outputs) outputViews.push_back(t.view());
  if (auto error = program.run("forward", inputViews, outputViews, *symbols)) return error;
  return outputs;
}

std::map<std::string, unsigned> liftedOps(const ir::Module &model) {
  auto copy = model.clone();
  const passes::PassOptions options;
  passes::PassContext context(options);
  llvm::cantFail(passes::runPasses(*copy, {"simplify", "lift"}, context));
  std::map<std::string, unsigned> counts;
  for (const ir::Op &op : copy->function("forward")->block().ops()) ++counts[op.name().str()];
  return counts;
}

} // namespace fusor::tests
