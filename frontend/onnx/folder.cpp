#include "frontend/onnx/folder.h"
#include "frontend/onnx/error.h"
#include "frontend/onnx/limits.h"
#include "frontend/onnx/names.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::onnx {
namespace {

ir::RefTensor tensorOf(ir::DType dtype, llvm::ArrayRef<int64_t> shape, const char *bytes, int64_t count) {
  ir::RefTensor tensor{dtype, {shape.begin(), shape.end()}, {}};
  tensor.data.reserve(count);
  for (int64_t i = 0; i < count; ++i) tensor.data.push_back(ir::loadElement(dtype, bytes, i));
  return tensor;
}

} // namespace

llvm::Error Folder::spend(const ir::TensorType &type) {
  ir::Dim count = type.elements();
  if (!count.isConstant()) return problem("depends on the sizes of inputs: {0}", type.str());
  if (count.value() > budget_) return problem("is too large to be computed at import: {0}", type.str());
  budget_ -= count.value();
  return llvm::Error::success();
}

llvm::Expected<ir::RefTensor> Folder::leaf(ir::Value value) {
  if (value.isArgument()) {
    std::optional<Data> data = inputs_ ? inputs_(value.index()) : std::nullopt;
    if (!data) return problem("depends on what is in input '{0}', which is not known at import", shown(value.name()));
    if (!llvm::is_contained(fixed_, value.index())) fixed_.push_back(value.index());
    if (data->elements() > budget_) return problem("is too large to be computed at import");
    budget_ -= data->elements();
    return tensorOf(data->dtype, data->shape, data->bytes->data(), data->elements());
  }
  const ir::Persistent &persistent = *module_.persistent(value.name()); // all consts: nothing else is made at import
  if (auto error = spend(persistent.type)) return error;
  llvm::SmallVector<int64_t, 4> shape;
  for (const ir::Dim &dim : persistent.type.shape) shape.push_back(dim.value());
  return tensorOf(persistent.type.dtype, shape, persistent.data->data(), persistent.type.elements().value());
}

llvm::Expected<const ir::RefTensor *> Folder::evaluate(ir::Value value) {
  llvm::SmallVector<ir::Value, 16> stack{value}; // no recursion: chains in a file may be long
  while (!stack.empty()) {
    ir::Value at = stack.back();
    if (known_.count(at.def())) {
      stack.pop_back();
      continue;
    }
    if (stack.size() > 100000) return problem("is computed by too long a chain");
    size_t before = stack.size();
    if (ir::Op *op = at.op())
      for (ir::Value operand : op->operands())
        if (operand && !known_.count(operand.def())) stack.push_back(operand);
    if (stack.size() > before) continue;
    if (auto error = evaluateOne(at)) return error;
    stack.pop_back();
  }
  return &known_.find(value.def())->second;
}

llvm::Error Folder::evaluateOne(ir::Value value) {
  ir::Op *op = value.op();
  if (!op) {
    auto tensor = leaf(value);
    if (!tensor) return tensor.takeError();
    known_[value.def()] = std::move(*tensor);
    return llvm::Error::success();
  }
  ir::Lowering lowering = op->def().lowering;
  if (lowering == ir::Lowering::contraction || lowering == ir::Lowering::attention)
    return problem("depends on a {0}, which is not computed at import", op->name());
  llvm::SmallVector<const ir::RefTensor *, 4> inputs;
  for (ir::Value operand : op->operands()) inputs.push_back(operand ? &known_.find(operand.def())->second : nullptr);
  llvm::SmallVector<ir::RefTensor, 2> outputs;
  for (ir::Value result : op->results()) {
    if (auto error = spend(result.type())) return error;
    auto tensor = ir::zeros(result.type(), {});
    if (!tensor) return tensor.takeError();
    outputs.push_back(std::move(*tensor));
  }
  for (const ir::Attrs::Entry &entry : op->attrs().entries())
    if (const auto *shape = std::get_if<ir::Shape>(&entry.value))
      for (const ir::Dim &dim : *shape)
        if (!dim.isConstant()) return problem("depends on the sizes of inputs: {0}", shown(dim.str()));
  if (auto error = ir::evaluateOp(op->site(), inputs, outputs, {})) return error;
  for (unsigned i = 0; i < outputs.size(); ++i) known_[op->result(i).def()] = std::move(outputs[i]);
  return llvm::Error::success();
}

} // namespace fusor::onnx
