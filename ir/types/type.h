// The type of a value: dtype, shape, and for quantised tensors the granularity of their scales.
#pragma once
#include "ir/types/dim.h"
#include "ir/types/dtype.h"

namespace fusor::ir {

/// How many elements share one scale. `none`: not quantised, or an FP8 tensor that carries no scale.
enum class Granularity : uint8_t { none, tensor };

/// `bf16[B, 256, 768]`, `f32[]`, `f8e4m3[B, 768] per tensor`.
struct TensorType {
  DType dtype = DType::f32;
  Shape shape;
  Granularity granularity = Granularity::none;

  unsigned rank() const { return shape.size(); }
  Dim elements() const { return product(shape); }
  /// Dim `i`; negative counts from the end.
  const Dim &dim(int i) const { return shape[i < 0 ? shape.size() + i : i]; }
  TensorType withDType(DType d) const { return {d, shape, Granularity::none}; }
  TensorType withShape(Shape s) const { return {dtype, std::move(s), granularity}; }
  bool operator==(const TensorType &o) const {
    return dtype == o.dtype && shape == o.shape && granularity == o.granularity;
  }
  bool operator!=(const TensorType &o) const { return !(*this == o); }
  std::string str() const;
};

/// Bytes of the data under `symbols`; absent when a symbol is missing.
std::optional<int64_t> byteSize(const TensorType &type, const SymbolValues &symbols);

/// The shape all of `shapes` broadcast to (NumPy's rule, from the last dim); absent when they do not.
std::optional<Shape> broadcastShapes(llvm::ArrayRef<llvm::ArrayRef<Dim>> shapes);

} // namespace fusor::ir
