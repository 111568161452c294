// The graph as a number type: arithmetic on `Graph` inserts ops. What gradients and expansions are written in.
#pragma once
#include "ir/graph/builder.h"
#include "ir/ops/op_def.h"

namespace fusor::ir {

class Graph {
public:
  Graph() = default; // no value: "no gradient here"
  Graph(Builder &builder, Value value) : builder_(&builder), value_(value) {}
  operator Value() const { return value_; }
  explicit operator bool() const { return static_cast<bool>(value_); }
  Value value() const { return value_; }
  Builder &builder() const { return *builder_; }

  Graph unary(llvm::StringRef op) const;
  static Graph binary(llvm::StringRef op, Graph a, Graph b);
  static Graph select(Graph condition, Graph a, Graph b);
  /// A scalar constant of this value's dtype.
  Graph number(double value) const;
  Graph cast(DType to) const;
  /// Sum over `dims`, kept as size 1 where `keep`.
  Graph sum(llvm::ArrayRef<int64_t> dims, bool keep = true) const;
  Graph max(llvm::ArrayRef<int64_t> dims, bool keep = true) const;
  /// Sum divided by the (perhaps symbolic) number of elements.
  Graph mean(llvm::ArrayRef<int64_t> dims, bool keep = true) const;

private:
  Builder *builder_ = nullptr;
  Value value_;
};

/// The operands of `site.op` and the gradient of its result, cast to the dtype gradients are computed in.
llvm::SmallVector<Graph, 4> gradientArguments(const GradientSite &site);
/// `gradients` rounded to each operand's dtype and summed over the dims the operand was broadcast along.
llvm::SmallVector<Value, 4> narrowGradients(const GradientSite &site, llvm::ArrayRef<Graph> gradients);
/// `gradient` summed over the dims along which `shape` was broadcast to it.
Value sumToShape(Builder &builder, Value gradient, llvm::ArrayRef<Dim> shape);
/// The dtype arithmetic on `dtype` is done in: f32 for narrow floats, else itself.
inline DType computeType(DType dtype) { return isNarrowFloat(dtype) ? DType::f32 : dtype; }
/// The value in it.
inline Graph wide(Builder &b, Value v) { return {b, b.cast(v, computeType(v.dtype()))}; }

} // namespace fusor::ir
