#include "ir/ops/graph_value.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::ir {

Graph Graph::unary(llvm::StringRef op) const { return {*builder_, builder_->op(op, {value_})}; }

Graph Graph::binary(llvm::StringRef op, Graph a, Graph b) {
  return {*a.builder_, a.builder_->op(op, {a.value_, b.value_})};
}

Graph Graph::select(Graph condition, Graph a, Graph b) {
  return {*a.builder_, a.builder_->op("select", {condition.value_, a.value_, b.value_})};
}

Graph Graph::number(double value) const { return {*builder_, builder_->constant(value, value_.dtype())}; }

Graph Graph::cast(DType to) const { return {*builder_, builder_->cast(value_, to)}; }

Graph Graph::sum(llvm::ArrayRef<int64_t> dims, bool keep) const {
  return {*builder_,
          builder_->op("sum", {value_}, {{"dims", std::vector<int64_t>(dims.begin(), dims.end())}, {"keep", keep}})};
}
Graph Graph::max(llvm::ArrayRef<int64_t> dims, bool keep) const {
  return {*builder_, builder_->op("reduce_max", {value_},
                                  {{"dims", std::vector<int64_t>(dims.begin(), dims.end())}, {"keep", keep}})};
}
Graph Graph::mean(llvm::ArrayRef<int64_t> dims, bool keep) const {
  return {*builder_,
          builder_->op("mean", {value_}, {{"dims", std::vector<int64_t>(dims.begin(), dims.end())}, {"keep", keep}})};
}

llvm::SmallVector<Graph, 4> gradientArguments(const GradientSite &site) {
  llvm::SmallVector<Graph, 4> args;
  auto widen = [&](Value value) {
    args.emplace_back(site.builder,
                      value.dtype() == DType::i1 ? value : site.builder.cast(value, computeType(value.dtype())));
  };
  for (Value operand : site.op.operands()) widen(operand);
  widen(site.gradient());
  return args;
}

llvm::SmallVector<Value, 4> narrowGradients(const GradientSite &site, llvm::ArrayRef<Graph> gradients) {
  llvm::SmallVector<Value, 4> narrowed;
  for (unsigned i = 0; i < site.op.operands().size(); ++i) {
    Value gradient = i < gradients.size() ? gradients[i].value() : Value();
    Value operand = site.op.operand(i);
    if (gradient) gradient = site.builder.cast(sumToShape(site.builder, gradient, operand.shape()), operand.dtype());
    narrowed.push_back(gradient);
  }
  return narrowed;
}

Value sumToShape(Builder &builder, Value gradient, llvm::ArrayRef<Dim> shape) {
  unsigned extra = gradient.rank() > shape.size() ? gradient.rank() - shape.size() : 0;
  std::vector<int64_t> lead, kept;
  for (unsigned i = 0; i < extra; ++i) lead.push_back(i);
  for (unsigned i = 0; i < shape.size() && gradient.rank() >= shape.size(); ++i)
    if (shape[i].is(1) && !gradient.shape()[extra + i].is(1)) kept.push_back(extra + i);
  if (!kept.empty()) gradient = builder.op("sum", {gradient}, {{"dims", kept}, {"keep", true}});
  if (!lead.empty()) gradient = builder.op("sum", {gradient}, {{"dims", lead}, {"keep", false}});
  if (gradient.shape() != shape) // a formula like x * 0 + y may give a gradient that is smaller than its operand
    gradient = builder.op("broadcast", {gradient}, {{"shape", Shape(shape.begin(), shape.end())}});
  return gradient;
}

} // namespace fusor::ir
