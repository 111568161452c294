#include "tests/numerics/on_cpu.h"
#include "passes/pipeline.h"

namespace fusor::tests {

using namespace ir;

namespace {

std::vector<char> bytesOf(const RefTensor &tensor) {
  std::vector<char> bytes(static_cast<size_t>(tensor.elements()) * byteSize(tensor.dtype));
  for (int64_t i = 0; i < tensor.elements(); ++i) storeElement(tensor.dtype, bytes.data(), i, tensor.data[i]);
  return bytes;
}

RefTensor tensorOf(DType dtype, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<char> bytes) {
  RefTensor tensor;
  tensor.dtype = dtype;
  tensor.shape.assign(shape.begin(), shape.end());
  tensor.data.resize(bytes.size() / byteSize(dtype));
  for (int64_t i = 0; i < tensor.elements(); ++i) tensor.data[i] = loadElement(dtype, bytes.data(), i);
  return tensor;
}

// Every op a cluster of its own: fusion with no fuel, so that no two are merged.
llvm::Error prepare(Module &module, bool fused) {
  passes::PassOptions options;
  if (!fused) options.fuel = 0;
  passes::PassContext context(options);
  return passes::runPasses(module, {std::string("layout"), std::string("fusion")}, context);
}

} // namespace

llvm::Expected<CpuRun> runOnCpu(const Module &module, const RandomInputs &inputs, CpuOptions options) {
  auto prepared = module.clone();
  if (auto error = prepare(*prepared, options.fused)) return error;
  runtime::CompileOptions compileOptions;
  compileOptions.threads = options.threads;
  compileOptions.symbols = inputs.symbols;
  std::string name = module.functions()[0]->name().str();
  auto program = runtime::compile(std::move(prepared), Target(), compileOptions);
  if (!program) return program.takeError();
  if (auto error = (*program)->initialize(1)) return error;
  for (const auto &entry : inputs.state)
    if (auto error = (*program)->writePersistent(entry.first(), bytesOf(entry.second))) return error;

  std::vector<std::vector<char>> memory;
  std::vector<runtime::TensorView> arguments;
  for (const RefTensor &in : inputs.inputs) memory.push_back(bytesOf(in));
  for (size_t i = 0; i < memory.size(); ++i) {
    const RefTensor &in = inputs.inputs[i];
    arguments.push_back({in.dtype, {in.shape.begin(), in.shape.end()}, memory[i].data()});
  }
  auto symbols = (*program)->bindSymbols(name, arguments, inputs.symbols);
  if (!symbols) return symbols.takeError();
  auto outputs = (*program)->resultTypes(name, *symbols);
  if (!outputs) return outputs.takeError();
  std::vector<std::vector<char>> results;
  for (runtime::TensorView &view : *outputs) results.emplace_back(static_cast<size_t>(view.bytes()));
  for (size_t i = 0; i < results.size(); ++i) (*outputs)[i].data = results[i].data();
  if (auto error = (*program)->run(name, arguments, *outputs, inputs.symbols)) return error;

  CpuRun run;
  for (size_t i = 0; i < results.size(); ++i)
    run.result.results.push_back(tensorOf((*outputs)[i].dtype, (*outputs)[i].shape, results[i]));
  for (const ReturnEntry &entry : module.functions()[0]->returns()) {
    if (entry.kind != ReturnKind::update) continue;
    auto type = (*program)->persistentType(entry.name);
    if (!type) return type.takeError();
    std::vector<char> bytes(static_cast<size_t>(type->bytes()));
    if (auto error = (*program)->readPersistent(entry.name, bytes)) return error;
    run.result.updates[entry.name] = tensorOf(type->dtype, type->shape, bytes);
  }
  run.fallbacks.assign((*program)->fallbacks().begin(), (*program)->fallbacks().end());
  return run;
}

} // namespace fusor::tests
