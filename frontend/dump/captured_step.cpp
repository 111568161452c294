#include "frontend/dump/captured_step.h"
#include "codegen/emit/kernel_files.h"
#include "frontend/api/tensor_files.h"
#include "frontend/dump/dumped_program.h"
#include "ir/graph/clone.h"
#include "ir/graph/printer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Path.h"

namespace fusor::frontend {

using runtime::DescribedStep, runtime::Description;

namespace {

// The tensors of one side of a step, written as files; their entries in inputs.json.
llvm::Expected<llvm::json::Array> writeTensors(const std::string &inputs, llvm::StringRef kind,
                                               llvm::ArrayRef<ir::Value> values, const ir::ValueNames &names,
                                               llvm::ArrayRef<std::vector<char>> contents,
                                               const ir::SymbolValues &symbols) {
  llvm::json::Array entries;
  for (unsigned i = 0; i < values.size(); ++i) {
    const ir::TensorType &type = values[i].type();
    HostTensor tensor{type.dtype, {}, contents[i]};
    for (const ir::Dim &dim : type.shape) tensor.shape.push_back(*dim.evaluate(symbols));
    tensor.bytes.resize(tensor.view().bytes()); // without what alignment adds
    std::string name = llvm::StringRef(names(values[i])).drop_front().str(), stem = tensorFileStem(kind, i, name);
    if (auto error = writeTensorFile(inputs, stem, tensor)) return error;
    llvm::json::Array shape;
    for (int64_t size : tensor.shape) shape.push_back(size);
    entries.push_back(llvm::json::Object{{"name", name},
                                         {"type", type.str()},
                                         {"dtype", ir::name(type.dtype)},
                                         {"shape", std::move(shape)},
                                         {"file", llvm::sys::path::filename(findTensorFile(inputs, stem)).str()}});
  }
  return entries;
}

// The arrays of multi_tensor.cuh but for the addresses: which tensors they are of.
llvm::json::Object tableJson(const codegen::TensorTable &table, const ir::SymbolValues &symbols) {
  llvm::json::Array columns, sizes, widths, chunks{0};
  for (unsigned c = 0; c < table.tensors.front().pointers.size(); ++c) {
    llvm::json::Array column;
    for (const auto &tensor : table.tensors)
      column.push_back(llvm::json::Object{{"kind", tensor.pointers[c].isOutput ? "output" : "input"},
                                          {"index", tensor.pointers[c].index}});
    columns.push_back(std::move(column));
  }
  int64_t last = 0;
  for (size_t t = 0; t < table.tensors.size(); ++t) {
    int64_t elements = *table.tensors[t].elements.evaluate(symbols);
    sizes.push_back(elements), widths.push_back(table.tensors[t].columns);
    chunks.push_back(last += table.chunks(t, elements));
  }
  llvm::json::Object object{
      {"pointers", std::move(columns)}, {"sizes", std::move(sizes)}, {"chunks", std::move(chunks)}};
  if (table.tileSide) object["columns"] = std::move(widths);
  return object;
}

llvm::json::Array launchesJson(const Description &description, const DescribedStep &step) {
  llvm::json::Array launches;
  for (unsigned i = 0; i < step.kernels.size(); ++i) {
    codegen::Kernel kernel = step.set.kernels[i];
    kernel.name = description.kernels[step.kernels[i]].code.name;
    llvm::json::Object launch = codegen::kernelJson(kernel);
    launch["kernel"] = kernel.name;
    launch.erase("name"), launch.erase("grid");
    launch["grid_blocks"] = kernel.grid.evaluate(description.symbols).value_or(0);
    launches.push_back(std::move(launch));
  }
  return launches;
}

} // namespace

std::unique_ptr<ir::Module> moduleOfOp(const ir::Op &op, llvm::StringRef name) {
  auto module = std::make_unique<ir::Module>(name);
  for (const auto &[symbol, range] : op.function()->module().symbols()) module->declareSymbol(symbol, range);
  ir::Function &function = module->addFunction(name);
  ir::ValueMap map;
  unsigned number = 0;
  auto argumentFor = [&](ir::Value value, llvm::StringRef called) {
    std::string fallback = "in" + std::to_string(number++);
    map[value.def()] = function.block().addArgument(value.type(), called.empty() ? llvm::StringRef(fallback) : called);
  };
  llvm::SmallVector<ir::ReturnEntry, 4> returns;
  llvm::SmallVector<ir::Value, 4> results;
  if (op.body()) {
    for (ir::Value argument : op.body()->arguments()) argumentFor(argument, argument.name());
    cloneInto(function.block(), *op.body(), map, ir::CloneTerminator::no);
    for (ir::Value yielded : op.body()->terminator()->operands()) results.push_back(map.lookup(yielded.def()));
  } else {
    for (ir::Value operand : op.operands())
      if (operand && !map.count(operand.def())) argumentFor(operand, operand.name());
    results = ir::cloneInto(function.block(), op, map)->results();
  }
  for (unsigned i = 0; i < results.size(); ++i) {
    if (results[i].name().empty()) results[i].setName("out" + std::to_string(i));
    returns.push_back({ir::ReturnKind::result, "", results[i]});
  }
  function.setReturns(returns);
  return module;
}

llvm::Error writeCapturedStep(const DumpFolder &folder, const Description &description, unsigned kernel,
                              const runtime::StepContent &content) {
  const DescribedStep &step = description.steps[content.step];
  const std::string &name = description.kernels[kernel].code.name;
  auto module = moduleOfOp(*step.op, name);
  std::string place = "kernels/" + name + "/", inputs = folder.path() + "/" + place + "inputs";
  if (auto error = folder.write(place + "kernel.fir", module->str())) return error;
  const ir::Function &function = *module->function(name);
  const ir::ValueNames names(function.block());
  llvm::SmallVector<ir::Value, 8> results;
  for (const ir::ReturnEntry &entry : function.returns()) results.push_back(entry.value);
  auto read = writeTensors(inputs, "input", function.block().arguments(), names, content.inputs, description.symbols);
  if (!read) return read.takeError();
  auto wrote = writeTensors(inputs, "output", results, names, content.outputs, description.symbols);
  if (!wrote) return wrote.takeError();
  llvm::json::Object symbols;
  for (const auto &symbol : description.symbols) symbols[symbol.getKey()] = symbol.getValue();
  llvm::json::Array workspaces;
  for (const codegen::Count &bytes : step.set.workspaces)
    workspaces.push_back(bytes.evaluate(description.symbols).value_or(0));
  llvm::json::Object object{{"function", description.function->name()},
                            {"step", content.step},
                            {"symbols", std::move(symbols)},
                            {"inputs", std::move(*read)},
                            {"outputs", std::move(*wrote)},
                            {"workspaces", std::move(workspaces)},
                            {"launches", launchesJson(description, step)}};
  if (step.set.table) object["table"] = tableJson(*step.set.table, description.symbols);
  if (!content.product.empty()) { // a library's product, which the kernels go on from
    if (auto error = folder.write(place + "inputs/workspace_0.bin", {content.product.data(), content.product.size()}))
      return error;
    object["product"] = "workspace_0.bin";
  }
  if (content.productOutput) object["product_output"] = *content.productOutput;
  return folder.write(place + "inputs/inputs.json", jsonText(std::move(object)));
}

} // namespace fusor::frontend
