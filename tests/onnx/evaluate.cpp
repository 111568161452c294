#include "tests/onnx/evaluate.h"
#include "frontend/api/compile_module.h"
#include "frontend/api/tensor_files.h"
#include "gtest/gtest.h"
#include <random>

namespace fusor::tests {

using frontend::HostTensor;

ir::RefTensor tensor(ir::DType dtype, std::vector<int64_t> shape, Numbers data) {
  return {dtype, {shape.begin(), shape.end()}, std::move(data)};
}

ir::RefTensor randomTensor(ir::DType dtype, std::vector<int64_t> shape, uint64_t seed, int64_t limit) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  int64_t elements = 1;
  for (int64_t dim : shape) elements *= dim;
  Numbers data;
  for (int64_t i = 0; i < elements; ++i)
    data.push_back(ir::isInteger(dtype) ? static_cast<double>(random() % static_cast<uint64_t>(limit))
                                        : static_cast<double>(static_cast<float>(normal(random))));
  return tensor(dtype, std::move(shape), std::move(data));
}

namespace {

llvm::Expected<std::vector<ir::RefTensor>> tryResults(const ModelBuilder &model, llvm::ArrayRef<ir::RefTensor> inputs) {
  auto imported = onnx::importBytes(model.bytes(), "m.onnx", "");
  if (!imported) return imported.takeError();
  auto results = ir::evaluate(*imported->module->function("forward"), inputs);
  if (!results) return results.takeError();
  return std::vector<ir::RefTensor>(results->results.begin(), results->results.end());
}

} // namespace

std::vector<ir::RefTensor> resultsOf(const ModelBuilder &model, llvm::ArrayRef<ir::RefTensor> inputs) {
  auto results = tryResults(model, inputs);
  if (results) return std::move(*results);
  ADD_FAILURE() << llvm::toString(results.takeError());
  return std::vector<ir::RefTensor>(8);
}

std::string evaluated(const ModelBuilder &model, llvm::ArrayRef<ir::RefTensor> inputs) {
  auto results = tryResults(model, inputs);
  if (!results) return llvm::toString(results.takeError());
  std::string text;
  for (double value : results->front().data) text += llvm::formatv("{0:f3} ", value).str();
  return text;
}

std::vector<Numbers> onCpu(const ir::Module &module, llvm::ArrayRef<ir::RefTensor> inputs,
                           llvm::ArrayRef<const char *> disabled) {
  auto device = frontend::chooseDevice("cpu");
  frontend::DeviceSettings settings;
  settings.device = "cpu", settings.threads = 1;
  frontend::CompileRequest request(settings);
  for (const char *rule : disabled) request.passes.disabledRules.insert(rule);
  auto compiled = frontend::compileModule(module.clone(), *device, std::move(request));
  if (!compiled) return ADD_FAILURE() << llvm::toString(compiled.takeError()), std::vector<Numbers>(1);
  runtime::Program &program = *compiled->program;
  llvm::cantFail(program.initialize(0));
  std::vector<HostTensor> tensors;
  std::vector<runtime::TensorView> views;
  for (const ir::RefTensor &input : inputs) {
    HostTensor t{input.dtype, input.shape, std::vector<char>(input.data.size() * ir::byteSize(input.dtype))};
    for (size_t i = 0; i < input.data.size(); ++i) ir::storeElement(t.dtype, t.bytes.data(), i, input.data[i]);
    tensors.push_back(std::move(t));
  }
  for (HostTensor &t : tensors) views.push_back(t.view());
  auto types = program.resultTypes("forward", llvm::cantFail(program.bindSymbols("forward", views)));
  std::vector<HostTensor> results;
  std::vector<runtime::TensorView> resultViews;
  for (const runtime::TensorView &type : *types)
    results.push_back({type.dtype, type.shape, std::vector<char>(type.bytes())});
  for (HostTensor &t : results) resultViews.push_back(t.view());
  if (auto error = program.run("forward", views, resultViews))
    return ADD_FAILURE() << llvm::toString(std::move(error)), std::vector<Numbers>(1);
  std::vector<Numbers> values;
  for (const HostTensor &t : results) {
    values.emplace_back();
    for (int64_t i = 0; i < t.elements(); ++i) values.back().push_back(ir::loadElement(t.dtype, t.bytes.data(), i));
  }
  return values;
}

} // namespace fusor::tests
