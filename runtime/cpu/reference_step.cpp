#include "runtime/cpu/reference_step.h"
#include "ir/graph/bug.h"
#include "ir/graph/clone.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

namespace fusor::runtime {

using namespace ir;

namespace {

// A quantised tensor's scale is an f32 behind its elements, at the next multiple of 16.
int64_t scaleOffset(DType dtype, int64_t elements) {
  return static_cast<int64_t>(llvm::alignTo(elements * byteSize(dtype), 16));
}

} // namespace

llvm::SmallVector<Value, 8> ReferenceBody::inputsOf(const Op &op) {
  llvm::SmallVector<Value, 8> inputs;
  for (Value operand : op.operands())
    if (op.is("fusion") || (operand && !llvm::is_contained(inputs, operand))) inputs.push_back(operand);
  return inputs;
}

ReferenceBody::ReferenceBody(const Op &op) : function_(&module_.addFunction("body")) {
  Block &block = function_->block();
  ValueMap map;
  llvm::SmallVector<ReturnEntry, 4> returns;
  if (op.is("fusion")) {
    for (Value argument : op.body()->arguments())
      map[argument.def()] = block.addArgument(argument.type(), argument.name());
    cloneInto(block, *op.body(), map, CloneTerminator::no);
    for (Value yielded : op.body()->terminator()->operands()) {
      auto it = map.find(yielded.def());
      returns.push_back({ReturnKind::result, "", it == map.end() ? yielded : it->second});
    }
  } else {
    for (Value input : inputsOf(op)) map[input.def()] = block.addArgument(input.type(), input.name());
    Op *copy = cloneInto(block, op, map);
    for (Value result : copy->results()) returns.push_back({ReturnKind::result, "", result});
  }
  function_->setReturns(returns);
}

std::string ReferenceBody::asModule(const SymbolValues &symbols) {
  for (const auto &symbol : symbols) module_.declareSymbol(symbol.first(), {symbol.second, symbol.second});
  return module_.str();
}

RefTensor readTensor(const TensorType &type, const char *data, const SymbolValues &symbols) {
  auto tensor = zeros(type, symbols);
  if (!tensor) FUSOR_BUG("{0}", llvm::toString(tensor.takeError()));
  for (int64_t i = 0; i < tensor->elements(); ++i) tensor->data[i] = loadElement(type.dtype, data, i);
  if (type.granularity == Granularity::tensor) {
    float scale;
    std::memcpy(&scale, data + scaleOffset(type.dtype, tensor->elements()), 4);
    tensor->scale = scale;
  }
  return std::move(*tensor);
}

void writeTensor(const TensorType &type, const RefTensor &tensor, char *data) {
  for (int64_t i = 0; i < tensor.elements(); ++i) storeElement(type.dtype, data, i, tensor.data[i]);
  if (type.granularity != Granularity::tensor) return;
  auto scale = static_cast<float>(tensor.scale);
  std::memcpy(data + scaleOffset(type.dtype, tensor.elements()), &scale, 4);
}

std::vector<RefTensor> ReferenceBody::read(llvm::ArrayRef<const char *> inputs, const SymbolValues &symbols) const {
  std::vector<RefTensor> tensors;
  for (unsigned i = 0; i < inputs.size(); ++i)
    tensors.push_back(readTensor(function_->block().argument(i).type(), inputs[i], symbols));
  return tensors;
}

llvm::Expected<std::vector<RefTensor>> ReferenceBody::evaluate(llvm::ArrayRef<RefTensor> inputs,
                                                               const SymbolValues &symbols) const {
  auto result = ir::evaluate(*function_, inputs, {}, symbols);
  if (!result) return result.takeError();
  return std::move(result->results);
}

void ReferenceStep::run(const StepMemory &memory, Workers &workers) const {
  auto results = body_->evaluate(body_->read(memory.inputs, symbols_), symbols_);
  if (!results) FUSOR_BUG("the reference cannot evaluate a step: {0}", llvm::toString(results.takeError()));
  auto returns = body_->function().returns();
  for (unsigned i = 0; i < results->size(); ++i) writeTensor(returns[i].value.type(), (*results)[i], memory.outputs[i]);
}

} // namespace fusor::runtime
