// Reductions. `dims` counts from the front or, negative, from the end; an empty list reduces everything.
#include "ir/ops/reduction.h"
#include "ir/ops/families.h"
#include "ir/ops/indexing.h"
#include "ir/ops/op_builder.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

namespace fusor::ir {

std::vector<bool> reducedDims(const OpSite &site, unsigned rank) {
  const auto &dims = site.attr<std::vector<int64_t>>("dims");
  std::vector<bool> reduced(rank, dims.empty());
  for (int64_t dim : dims) reduced[dim < 0 ? dim + rank : dim] = true;
  return reduced;
}

namespace {

llvm::Expected<Shape> reducedShape(const OpSite &site) {
  const Shape &shape = site.type(0).shape;
  int64_t rank = shape.size();
  for (int64_t dim : site.attr<std::vector<int64_t>>("dims"))
    if (dim < -rank || dim >= rank)
      return opError("dims must be in {0}..{1} for {2}, found {3}", -rank, rank - 1, site.type(0).str(), dim);
  llvm::SmallVector<bool, 6> named(rank, false);
  for (int64_t dim : site.attr<std::vector<int64_t>>("dims"))
    if (std::exchange(named[dim < 0 ? dim + rank : dim], true))
      return opError("dims name dim {0} of {1} twice", dim < 0 ? dim + rank : dim, site.type(0).str());
  auto reduced = reducedDims(site, rank);
  Shape result;
  for (unsigned i = 0; i < shape.size(); ++i) {
    if (!reduced[i])
      result.push_back(shape[i]);
    else if (site.flag("keep"))
      result.push_back(Dim(1));
  }
  return result;
}

llvm::Expected<ResultTypes> inferReduction(const OpSite &site) {
  auto shape = reducedShape(site);
  if (!shape) return shape.takeError();
  if (site.type(0).dtype == DType::i1) return opError("reduces numbers, is given {0}", site.type(0).str());
  return ResultTypes{{site.type(0).dtype, std::move(*shape)}};
}

llvm::Expected<ResultTypes> inferArg(const OpSite &site) {
  auto axis = checkedAxis(site, site.type(0));
  if (!axis) return axis.takeError();
  Shape shape = site.type(0).shape;
  if (site.flag("keep"))
    shape[*axis] = Dim(1);
  else
    shape.erase(shape.begin() + *axis);
  return ResultTypes{{DType::i32, std::move(shape)}};
}

// Strides of the result in terms of the input's index: 0 along reduced dims.
Index resultStrides(const OpSite &site, llvm::ArrayRef<int64_t> shape) {
  auto reduced = reducedDims(site, shape.size());
  Index strides(shape.size(), 0);
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;)
    if (!reduced[i]) strides[i] = stride, stride *= shape[i];
  return strides;
}

template <typename Combine> void reduce(const RefCall &call, double start, Combine combine) {
  const RefTensor &x = *call.inputs[0];
  RefTensor &y = call.outputs[0];
  std::fill(y.data.begin(), y.data.end(), start);
  Index strides = resultStrides(call.site, x.shape);
  forEachIndex(x.shape, [&](llvm::ArrayRef<int64_t> index, int64_t i) {
    double &into = y.data[dot(index, strides)];
    into = combine(into, x.data[i]);
  });
  for (double &v : y.data)
    if (isNarrowFloat(y.dtype)) v = roundTo(y.dtype, v);
}

void sumReference(const RefCall &call) {
  reduce(call, 0, [](double a, double b) { return a + b; });
}
void maxReference(const RefCall &call) {
  reduce(call, -std::numeric_limits<double>::infinity(), [](double a, double b) { return ir::max(a, b); });
}
void minReference(const RefCall &call) {
  reduce(call, std::numeric_limits<double>::infinity(), [](double a, double b) { return ir::min(a, b); });
}

// dy with the reduced dims back as size 1, so that it broadcasts.
Value keptShape(const GradientSite &g, Value v) {
  Shape shape = g.op.operand(0u).type().shape;
  auto reduced = reducedDims(g.op.site(), shape.size());
  for (unsigned i = 0; i < shape.size(); ++i)
    if (reduced[i]) shape[i] = Dim(1);
  return v.shape() == llvm::ArrayRef<Dim>(shape) ? v : g.builder.op("reshape", {v}, {{"shape", shape}});
}

llvm::SmallVector<Value, 4> sumGradient(const GradientSite &g) {
  Value x = g.op.operand(0u);
  return {g.builder.op("broadcast", {keptShape(g, g.gradient())}, {{"shape", x.type().shape}})};
}

llvm::SmallVector<Value, 4>
extremeGradient(const GradientSite &g) { // to every element that equals the extreme, shared evenly
  Value x = g.op.operand(0u);
  Builder &b = g.builder;
  Value y = keptShape(g, g.op.result()), dy = keptShape(g, g.gradient());
  Value hit = b.cast(b.op("eq", {x, y}), x.dtype());
  Attrs attrs{{"dims", g.op.attr<std::vector<int64_t>>("dims")}, {"keep", true}};
  return {b.op("mul", {hit, b.op("div", {dy, b.op("sum", {hit}, attrs)})})};
}

void argmaxReference(const RefCall &call) {
  const RefTensor &x = *call.inputs[0];
  unsigned axis = call.site.axis("axis", x.shape.size());
  int64_t inner = count(llvm::ArrayRef<int64_t>(x.shape).drop_front(axis + 1)), n = x.shape[axis];
  bool smallest = call.site.word("kind") == "min";
  for (int64_t i = 0; i < call.outputs[0].elements(); ++i) {
    const double *column = x.data.data() + (i / inner) * n * inner + i % inner;
    int64_t best = 0;
    for (int64_t k = 1; k < n; ++k) // the first of equals
      if (smallest ? column[k * inner] < column[best * inner] : column[k * inner] > column[best * inner]) best = k;
    call.outputs[0].data[i] = static_cast<double>(best);
  }
}

llvm::SmallVector<Value, 2> expandMean(Builder &b, const OpSite &site) {
  Value x = site.operand(0);
  auto reduced = reducedDims(site, x.rank());
  Shape extents;
  for (unsigned i = 0; i < x.rank(); ++i)
    if (reduced[i]) extents.push_back(x.shape()[i]);
  DType compute = computeType(x.dtype());
  Value sum = b.op("sum", {b.cast(x, compute)}, site.attrs);
  Value n = b.op("extent", {}, {{"shape", extents}, {"dtype", compute}});
  return {b.cast(b.op("div", {sum, n}), x.dtype())};
}

OpEntry reduction(const char *name, const char *summary) {
  return op(name)
      .summary(summary)
      .operands({"x"})
      .attr({"dims", AttrKind::integers, AttrValue(std::vector<int64_t>()), false, {}, {}})
      .note("reduced dims, negative from the end; empty: all")
      .flag("keep", false)
      .note("keep reduced dims as size 1")
      .lowering(Lowering::reduction)
      .infer(inferReduction);
}

} // namespace

llvm::ArrayRef<OpDef> reductionOps() {
  static const std::vector<OpDef> ops = {
      reduction("sum", "sum over dims").precision(PrecisionClass::wide).reference(sumReference).gradient(sumGradient),
      reduction("reduce_max", "largest over dims").reference(maxReference).gradient(extremeGradient),
      reduction("reduce_min", "smallest over dims").reference(minReference).gradient(extremeGradient),
      reduction("mean", "sum over dims divided by the number of elements")
          .precision(PrecisionClass::wide)
          .lowering(Lowering::expansion)
          .expansion(expandMean),
      op("arg_reduce")
          .summary("index of the largest (or smallest) along an axis, the first of equals")
          .operands({"x"})
          .integer("axis", -1)
          .note("searched dim")
          .flag("keep", false)
          .note("keep the dim as size 1")
          .word("kind", {"max", "min"})
          .note("largest or smallest")
          .lowering(Lowering::reduction)
          .infer(inferArg)
          .reference(argmaxReference)
          .zeroGradient(),
  };
  return ops;
}

} // namespace fusor::ir
