#include "ir/types/type.h"

namespace fusor::ir {

std::string TensorType::str() const {
  std::string text = name(dtype).str() + "[" + fusor::ir::str(llvm::ArrayRef<Dim>(shape)) + "]";
  if (granularity == Granularity::tensor) text += " per tensor";
  return text;
}

std::optional<int64_t> byteSize(const TensorType &type, const SymbolValues &symbols) {
  auto elements = type.elements().evaluate(symbols);
  if (!elements) return std::nullopt;
  return *elements * byteSize(type.dtype);
}

std::optional<Shape> broadcastShapes(llvm::ArrayRef<llvm::ArrayRef<Dim>> shapes) {
  size_t rank = 0;
  for (auto shape : shapes) rank = std::max(rank, shape.size());
  Shape result(rank, Dim(1));
  for (auto shape : shapes)
    for (size_t i = 0; i < shape.size(); ++i) {
      Dim &into = result[rank - 1 - i];
      const Dim &from = shape[shape.size() - 1 - i];
      if (into.is(1))
        into = from;
      else if (!from.is(1) && from != into)
        return std::nullopt;
    }
  return result;
}

} // namespace fusor::ir
