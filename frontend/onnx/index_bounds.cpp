#include "frontend/onnx/index_bounds.h"
#include "frontend/onnx/error.h"

namespace fusor::onnx {

std::optional<unsigned> argumentBehind(ir::Value value) {
  for (;;) {
    if (!value || !ir::isInteger(value.dtype())) return std::nullopt;
    if (value.isArgument()) return value.index();
    ir::Op *op = value.op();
    if (!op || !(op->is("reshape") || op->is("cast"))) return std::nullopt;
    value = op->operand(0u);
  }
}

llvm::Error checkIndexBounds(llvm::ArrayRef<IndexBound> bounds, const ir::Function &function,
                             llvm::ArrayRef<IndexElements> inputs, const ir::SymbolValues &symbols) {
  for (const IndexBound &bound : bounds) {
    auto size = bound.size.evaluate(symbols);
    if (!size || bound.input >= inputs.size()) continue;
    const IndexElements &input = inputs[bound.input];
    const auto elements = static_cast<int64_t>(input.bytes.size() / ir::byteSize(input.dtype));
    for (int64_t i = bound.first; i < elements; i += bound.every) {
      const auto index = static_cast<int64_t>(ir::loadElement(input.dtype, input.bytes.data(), i));
      if (index >= -*size && index < *size) continue;
      return problem("{0}: index {1}, element {2} of input '{3}', is outside of a dim of {4}: {5} to {6} are allowed",
                     bound.node, index, i, function.block().argument(bound.input).name(), *size, -*size, *size - 1);
    }
  }
  return llvm::Error::success();
}

} // namespace fusor::onnx
