#include "ir/reference/reference.h"
#include "ir/graph/bug.h"
#include "ir/graph/builder.h"
#include "ir/ops/indexing.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::ir {
namespace {

using Environment = llvm::DenseMap<ValueDef *, RefTensor>;

void roundTensor(RefTensor &tensor) {
  if (tensor.dtype == DType::f32 || tensor.dtype == DType::f64) return; // f32 stays exact: the oracle of f32 programs
  for (double &v : tensor.data) v = roundTo(tensor.dtype, v);
}

void evaluateFormula(const OpSite &site, llvm::ArrayRef<const RefTensor *> inputs, RefTensor &output) {
  llvm::SmallVector<Index, 4> strides;
  for (const RefTensor *input : inputs) strides.push_back(broadcastStrides(input->shape, output.shape));
  double args[4];
  forEachIndex(output.shape, [&](llvm::ArrayRef<int64_t> index, int64_t i) {
    for (size_t k = 0; k < inputs.size(); ++k) args[k] = inputs[k]->data[dot(index, strides[k])];
    output.data[i] = site.def.formula.value(args, site);
  });
  if (site.def.isChoice && isFloat(output.dtype)) return;
  if (!isUnsaturatedCast(site)) return roundTensor(output);
  for (double &v : output.data) v = roundUnsaturated(output.dtype, v);
}

llvm::Error evaluateBlock(const Block &block, Environment &env, const SymbolValues &symbols);

// Expands the op into a scratch function and evaluates that.
llvm::Error evaluateExpansion(const OpSite &site, llvm::ArrayRef<const RefTensor *> inputs,
                              llvm::MutableArrayRef<RefTensor> outputs, const SymbolValues &symbols) {
  Module module("expansion");
  Function &function = module.addFunction(site.def.name);
  Environment env;
  llvm::SmallVector<Value, 8> arguments;
  for (size_t i = 0; i < site.operands.size(); ++i) {
    if (!site.operands[i]) {
      arguments.push_back({});
      continue;
    }
    arguments.push_back(function.block().addArgument(site.operands[i].type(), "a"));
    env[arguments.back().def()] = *inputs[i];
  }
  Builder builder(function.block());
  auto results = site.def.expansion(builder, {site.def, arguments, site.attrs});
  if (auto error = evaluateBlock(function.block(), env, symbols)) return error;
  for (size_t i = 0; i < results.size(); ++i) outputs[i] = env[results[i].def()];
  return llvm::Error::success();
}

llvm::Error evaluateIn(const Op &op, Environment &env, const SymbolValues &symbols) {
  if (op.is("fusion")) {
    Environment inner;
    for (unsigned i = 0; i < op.operands().size(); ++i) inner[op.body()->argument(i).def()] = env[op.operand(i).def()];
    if (auto error = evaluateBlock(*op.body(), inner, symbols)) return error;
    Op *yield = op.body()->terminator();
    for (unsigned i = 0; i < op.resultCount(); ++i) env[op.result(i).def()] = inner[yield->operand(i).def()];
    return llvm::Error::success();
  }
  llvm::SmallVector<const RefTensor *, 8> inputs;
  for (Value operand : op.operands()) inputs.push_back(operand ? &env[operand.def()] : nullptr);
  llvm::SmallVector<RefTensor, 4> outputs;
  for (Value result : op.results()) {
    auto tensor = zeros(result.type(), symbols);
    if (!tensor) return tensor.takeError();
    outputs.push_back(std::move(*tensor));
  }
  if (auto error = evaluateOp(op.site(), inputs, outputs, symbols)) return error;
  for (unsigned i = 0; i < outputs.size(); ++i) env[op.result(i).def()] = std::move(outputs[i]);
  return llvm::Error::success();
}

llvm::Error evaluateBlock(const Block &block, Environment &env, const SymbolValues &symbols) {
  for (const Op &op : block.ops())
    if (!op.def().isTerminator)
      if (auto error = evaluateIn(op, env, symbols)) return error;
  return llvm::Error::success();
}

llvm::Expected<RefTensor> constantData(const Persistent &persistent, const SymbolValues &symbols) {
  auto tensor = zeros(persistent.type, symbols);
  if (!tensor) return tensor;
  for (int64_t i = 0; i < tensor->elements(); ++i)
    tensor->data[i] = loadElement(persistent.type.dtype, persistent.data->data(), i);
  return tensor;
}

llvm::Expected<RefTensor> persistentValue(const Module &module, llvm::StringRef name, const RefState &state,
                                          const SymbolValues &symbols);

llvm::Expected<RefTensor> derivedValue(const Module &module, const Persistent &persistent, const RefState &state,
                                       const SymbolValues &symbols) {
  Module scratch("derived");
  Function &function = scratch.addFunction("derive");
  llvm::SmallVector<Value, 2> operands;
  std::vector<RefTensor> inputs;
  for (const std::string &source : persistent.deriveFrom) {
    auto input = persistentValue(module, source, state, symbols);
    if (!input) return input;
    inputs.push_back(std::move(*input));
    operands.push_back(function.block().addArgument(module.persistent(source)->type, source));
  }
  Builder builder(function.block());
  Value derived = builder.op(persistent.deriveOp, operands, persistent.deriveAttrs);
  function.setReturns({{ReturnKind::result, "", derived}});
  auto result = evaluate(function, inputs, {}, symbols);
  if (!result) return result.takeError();
  return std::move(result->results[0]);
}

llvm::Expected<RefTensor> persistentValue(const Module &module, llvm::StringRef name, const RefState &state,
                                          const SymbolValues &symbols) {
  if (auto it = state.find(name); it != state.end()) return it->second;
  const Persistent *persistent = module.persistent(name);
  if (persistent->kind == PersistentKind::constant) return constantData(*persistent, symbols);
  if (persistent->kind == PersistentKind::derived) return derivedValue(module, *persistent, state, symbols);
  return opError("@{0} has no value", name);
}

llvm::Error bindSymbols(const TensorType &type, const RefTensor &input, llvm::StringRef name, SymbolValues &symbols) {
  if (type.rank() != input.shape.size())
    return opError("%{0} must be {1}, a tensor of rank {2} is given", name, type.str(), input.shape.size());
  for (unsigned i = 0; i < type.rank(); ++i) {
    if (auto symbol = type.shape[i].asSymbol()) symbols.try_emplace(*symbol, input.shape[i]);
    auto expected = type.shape[i].evaluate(symbols);
    if (expected && *expected != input.shape[i])
      return opError("%{0} must be {1}: dim {2} is {3}, expected {4}", name, type.str(), i, input.shape[i], *expected);
  }
  return llvm::Error::success();
}

} // namespace

llvm::Expected<RefTensor> zeros(const TensorType &type, const SymbolValues &symbols) {
  RefTensor tensor;
  tensor.dtype = type.dtype;
  for (const Dim &dim : type.shape) {
    auto size = dim.evaluate(symbols);
    if (!size) return opError("the size of {0} in {1} is not known", dim.str(), type.str());
    tensor.shape.push_back(*size);
  }
  tensor.data.assign(count(tensor.shape), 0.0);
  return tensor;
}

llvm::Error evaluateOp(const OpSite &site, llvm::ArrayRef<const RefTensor *> inputs,
                       llvm::MutableArrayRef<RefTensor> outputs, const SymbolValues &symbols) {
  if (site.def.reference)
    site.def.reference({site, inputs, outputs, symbols});
  else if (site.def.formula)
    evaluateFormula(site, inputs, outputs[0]);
  else if (site.def.expansion)
    return evaluateExpansion(site, inputs, outputs, symbols);
  else
    return opError("'{0}' has no reference", site.def.name);
  return llvm::Error::success();
}

llvm::Expected<RefResult> evaluate(const Function &function, llvm::ArrayRef<RefTensor> inputs, const RefState &state,
                                   SymbolValues symbols) {
  const Block &block = function.block();
  if (inputs.size() != block.argumentCount())
    return opError("@{0} takes {1} inputs, {2} are given", function.name(), block.argumentCount(), inputs.size());
  Environment env;
  for (unsigned i = 0; i < inputs.size(); ++i) {
    Value argument = block.argument(i);
    if (auto error = bindSymbols(argument.type(), inputs[i], argument.name(), symbols)) return error;
    env[argument.def()] = inputs[i];
  }
  for (Value read : function.reads()) {
    if (read.unused()) continue;
    auto value = persistentValue(function.module(), read.name(), state, symbols);
    if (!value) return value.takeError();
    env[read.def()] = std::move(*value);
  }
  if (auto error = evaluateBlock(block, env, symbols)) return error;
  RefResult result;
  for (const ReturnEntry &entry : function.returns()) {
    RefTensor &value = env[entry.value.def()];
    if (entry.kind == ReturnKind::result)
      result.results.push_back(value);
    else
      (entry.kind == ReturnKind::update ? result.updates : result.gradients)[entry.name] = value;
  }
  return result;
}

} // namespace fusor::ir
