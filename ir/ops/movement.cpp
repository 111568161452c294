// Movement: the same elements at other places. Each op is an index map, so kernels can read through it instead of
// copying.
#include "ir/ops/families.h"
#include "ir/ops/indexing.h"
#include "ir/ops/op_builder.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::ir {
namespace {

// --- reshape

llvm::Expected<ResultTypes> inferReshape(const OpSite &site) {
  TensorType type = site.type(0).withShape(site.attr<Shape>("shape"));
  if (type.elements() != site.type(0).elements())
    return opError("must keep the number of elements: {0} has {1}, [{2}] has {3}", site.type(0).str(),
                   site.type(0).elements().str(), str(llvm::ArrayRef<Dim>(type.shape)), type.elements().str());
  return ResultTypes{std::move(type)};
}

void copyReference(const RefCall &call) {
  call.outputs[0].data = call.inputs[0]->data;
  call.outputs[0].scale = call.inputs[0]->scale;
}

llvm::SmallVector<Value, 4> reshapeGradient(const GradientSite &g) {
  return {g.builder.op("reshape", {g.gradient()}, {{"shape", g.op.operand(0u).type().shape}})};
}

// --- transpose

llvm::Expected<ResultTypes> inferTranspose(const OpSite &site) {
  const auto &perm = site.attr<std::vector<int64_t>>("perm");
  std::vector<int64_t> sorted = perm;
  llvm::sort(sorted);
  for (unsigned i = 0; i < sorted.size(); ++i)
    if (sorted[i] != i)
      return opError("perm must be a permutation of 0..{0}, is {1}", site.type(0).rank() - 1,
                     str(site.attrValue("perm")));
  if (perm.size() != site.type(0).rank())
    return opError("perm must have {0} entries for {1}, has {2}", site.type(0).rank(), site.type(0).str(), perm.size());
  Shape shape;
  for (int64_t p : perm) shape.push_back(site.type(0).shape[p]);
  return ResultTypes{site.type(0).withShape(std::move(shape))};
}

void transposeReference(const RefCall &call) {
  const auto &perm = call.site.attr<std::vector<int64_t>>("perm");
  Index own = stridesOf(call.inputs[0]->shape), strides;
  for (int64_t p : perm) strides.push_back(own[p]);
  forEachIndex(call.outputs[0].shape, [&](llvm::ArrayRef<int64_t> index, int64_t i) {
    call.outputs[0].data[i] = call.inputs[0]->data[dot(index, strides)];
  });
  call.outputs[0].scale = call.inputs[0]->scale;
}

llvm::SmallVector<Value, 4> transposeGradient(const GradientSite &g) {
  const auto &perm = g.op.attr<std::vector<int64_t>>("perm");
  std::vector<int64_t> inverse(perm.size());
  for (unsigned i = 0; i < perm.size(); ++i) inverse[perm[i]] = i;
  return {g.builder.op("transpose", {g.gradient()}, {{"perm", inverse}})};
}

// --- broadcast

llvm::Expected<ResultTypes> inferBroadcast(const OpSite &site) {
  const Shape &to = site.attr<Shape>("shape");
  auto shape = broadcastShapes({site.type(0).shape, to});
  if (!shape || *shape != to)
    return opError("cannot spread {0} to [{1}]", site.type(0).str(), str(llvm::ArrayRef<Dim>(to)));
  return ResultTypes{site.type(0).withShape(to)};
}

void broadcastReference(const RefCall &call) {
  Index strides = broadcastStrides(call.inputs[0]->shape, call.outputs[0].shape);
  forEachIndex(call.outputs[0].shape, [&](llvm::ArrayRef<int64_t> index, int64_t i) {
    call.outputs[0].data[i] = call.inputs[0]->data[dot(index, strides)];
  });
  call.outputs[0].scale = call.inputs[0]->scale;
}

llvm::SmallVector<Value, 4> broadcastGradient(const GradientSite &g) {
  return {sumToShape(g.builder, g.gradient(), g.op.operand(0u).shape())};
}

// --- slice: start and size for every dim, so symbolic sizes work; step where it is not 1

llvm::Expected<ResultTypes> inferSlice(const OpSite &site) {
  const Shape &start = site.attr<Shape>("start"), &size = site.attr<Shape>("size");
  const auto &step = site.attr<std::vector<int64_t>>("step");
  const TensorType &x = site.type(0);
  if (start.size() != x.rank() || size.size() != x.rank() || (!step.empty() && step.size() != x.rank()))
    return opError("start, size and step need {0} entries each for {1}", x.rank(), x.str());
  for (unsigned i = 0; i < x.rank(); ++i) {
    if (!step.empty() && step[i] == 0) return opError("step must not be 0");
    int64_t by = step.empty() ? 1 : step[i];
    if (!start[i].isConstant() || !size[i].isConstant() || !x.shape[i].isConstant())
      continue; // checked when sizes are known
    int64_t first = start[i].value(), n = size[i].value(), last = first + (n - 1) * by, dim = x.shape[i].value();
    if (n > 0 && (std::min(first, last) < 0 || std::max(first, last) >= dim))
      return opError("reads elements {0} to {1} of dim {2}, which has {3} in {4}", first, last, i, dim, x.str());
  }
  return ResultTypes{x.withShape(size)};
}

Index evaluated(const Shape &shape, const SymbolValues &symbols) {
  Index values;
  for (const Dim &dim : shape) values.push_back(*dim.evaluate(symbols));
  return values;
}

void sliceReference(const RefCall &call) {
  const RefTensor &x = *call.inputs[0];
  Index strides = stridesOf(x.shape), start = evaluated(call.site.attr<Shape>("start"), call.symbols);
  int64_t offset = dot(start, strides);
  const auto &step = call.site.attr<std::vector<int64_t>>("step");
  for (unsigned i = 0; i < step.size(); ++i) strides[i] *= step[i];
  forEachIndex(call.outputs[0].shape, [&](llvm::ArrayRef<int64_t> index, int64_t i) {
    call.outputs[0].data[i] = x.data[offset + dot(index, strides)];
  });
  call.outputs[0].scale = x.scale;
}

llvm::SmallVector<Value, 4> sliceGradient(const GradientSite &g) { // zeros around (and between, for steps) the gradient
  Value x = g.op.operand(0u);
  const Shape &start = g.op.attr<Shape>("start"), &size = g.op.attr<Shape>("size");
  if (!g.op.attr<std::vector<int64_t>>("step").empty())
    return {g.builder.op("slice_grad", {g.gradient()}, [&] {
      Attrs attrs = g.op.attrs();
      attrs.erase("size");
      attrs.set("shape", x.type().shape);
      return attrs;
    }())};
  Shape after;
  for (unsigned i = 0; i < x.rank(); ++i) after.push_back(x.shape()[i] - start[i] - size[i]);
  return {g.builder.op("pad", {g.gradient()}, {{"before", start}, {"after", after}})};
}

llvm::Expected<ResultTypes> inferSliceGrad(const OpSite &site) {
  const Shape &start = site.attr<Shape>("start"), &shape = site.attr<Shape>("shape");
  const auto &step = site.attr<std::vector<int64_t>>("step");
  const TensorType &x = site.type(0);
  if (start.size() != x.rank() || shape.size() != x.rank() || (!step.empty() && step.size() != x.rank()))
    return opError("start, shape and step need {0} entries each for {1}", x.rank(), x.str());
  for (unsigned i = 0; i < x.rank(); ++i) {
    if (!step.empty() && step[i] == 0) return opError("step must not be 0");
    if (!start[i].isConstant() || !shape[i].isConstant() || !x.shape[i].isConstant()) continue;
    int64_t first = start[i].value(), n = x.shape[i].value(), dim = shape[i].value();
    int64_t last = first + (n - 1) * (step.empty() ? 1 : step[i]);
    if (n > 0 && (std::min(first, last) < 0 || std::max(first, last) >= dim))
      return opError("writes elements {0} to {1} of dim {2}, which has {3}", first, last, i, dim);
  }
  return ResultTypes{x.withShape(shape)};
}

void sliceGradReference(const RefCall &call) {
  RefTensor &y = call.outputs[0];
  Index strides = stridesOf(y.shape), start = evaluated(call.site.attr<Shape>("start"), call.symbols);
  int64_t offset = dot(start, strides);
  const auto &step = call.site.attr<std::vector<int64_t>>("step");
  for (unsigned i = 0; i < step.size(); ++i) strides[i] *= step[i];
  forEachIndex(call.inputs[0]->shape, [&](llvm::ArrayRef<int64_t> index, int64_t i) {
    y.data[offset + dot(index, strides)] = call.inputs[0]->data[i];
  });
}

// --- pad

llvm::Expected<ResultTypes> inferPad(const OpSite &site) {
  const Shape &before = site.attr<Shape>("before"), &after = site.attr<Shape>("after");
  const TensorType &x = site.type(0);
  if (before.size() != x.rank() || after.size() != x.rank())
    return opError("before and after need {0} entries each for {1}", x.rank(), x.str());
  Shape shape;
  for (unsigned i = 0; i < x.rank(); ++i) {
    shape.push_back(before[i] + x.shape[i] + after[i]);
  }
  return ResultTypes{x.withShape(std::move(shape))};
}

void padReference(const RefCall &call) {
  RefTensor &y = call.outputs[0];
  std::fill(y.data.begin(), y.data.end(), roundTo(y.dtype, call.site.real("value")));
  Index strides = stridesOf(y.shape), before = evaluated(call.site.attr<Shape>("before"), call.symbols);
  int64_t offset = dot(before, strides);
  forEachIndex(call.inputs[0]->shape, [&](llvm::ArrayRef<int64_t> index, int64_t i) {
    y.data[offset + dot(index, strides)] = call.inputs[0]->data[i];
  });
}

llvm::SmallVector<Value, 4> padGradient(const GradientSite &g) {
  return {g.builder.op("slice", {g.gradient()},
                       {{"start", g.op.attr<Shape>("before")}, {"size", g.op.operand(0u).type().shape}})};
}

// --- split and concat

llvm::Expected<ResultTypes> inferSplit(const OpSite &site) {
  auto axis = checkedAxis(site, site.type(0));
  if (!axis) return axis.takeError();
  const Shape &sizes = site.attr<Shape>("sizes");
  Dim sum(0);
  ResultTypes types;
  for (const Dim &size : sizes) {
    sum = sum + size;
    Shape shape = site.type(0).shape;
    shape[*axis] = size;
    types.push_back(site.type(0).withShape(std::move(shape)));
  }
  if (sum != site.type(0).shape[*axis])
    return opError("sizes [{0}] must add up to dim {1} of {2}", str(llvm::ArrayRef<Dim>(sizes)), *axis,
                   site.type(0).str());
  return types;
}

void splitReference(const RefCall &call) {
  const RefTensor &x = *call.inputs[0];
  unsigned axis = call.site.axis("axis", x.shape.size());
  Index strides = stridesOf(x.shape);
  int64_t offset = 0;
  for (RefTensor &y : call.outputs) {
    forEachIndex(y.shape,
                 [&](llvm::ArrayRef<int64_t> index, int64_t i) { y.data[i] = x.data[offset + dot(index, strides)]; });
    offset += y.shape[axis] * strides[axis];
    y.scale = x.scale;
  }
}

llvm::SmallVector<Value, 4> splitGradient(const GradientSite &g) {
  llvm::SmallVector<Value, 4> parts;
  for (unsigned i = 0; i < g.op.resultCount(); ++i) {
    Value part = g.gradient(i), y = g.op.result(i);
    if (!part) part = g.builder.op("broadcast", {g.builder.constant(0, y.dtype())}, {{"shape", y.type().shape}});
    parts.push_back(part);
  }
  return {g.builder.op("concat", parts, {{"axis", g.op.attr<int64_t>("axis")}})};
}

llvm::Expected<ResultTypes> inferConcat(const OpSite &site) {
  auto axis = checkedAxis(site, site.type(0));
  if (!axis) return axis.takeError();
  TensorType type = site.type(0);
  for (const Value &operand : llvm::drop_begin(site.operands)) {
    TensorType other = operand.type();
    if (other.rank() == type.rank()) {
      type.shape[*axis] = type.shape[*axis] + other.shape[*axis];
      other.shape[*axis] = type.shape[*axis];
    }
    if (other != type)
      return opError("operands must agree but for dim {0}: {1} and {2}", *axis, site.type(0).str(),
                     operand.type().str());
  }
  return ResultTypes{std::move(type)};
}

void concatReference(const RefCall &call) {
  RefTensor &y = call.outputs[0];
  unsigned axis = call.site.axis("axis", y.shape.size());
  Index strides = stridesOf(y.shape);
  int64_t offset = 0;
  for (const RefTensor *x : call.inputs) {
    forEachIndex(x->shape,
                 [&](llvm::ArrayRef<int64_t> index, int64_t i) { y.data[offset + dot(index, strides)] = x->data[i]; });
    offset += x->shape[axis] * strides[axis];
  }
}

llvm::SmallVector<Value, 4> concatGradient(const GradientSite &g) {
  unsigned axis = g.op.site().axis("axis", g.op.result().rank());
  Shape sizes;
  for (Value operand : g.op.operands()) sizes.push_back(operand.shape()[axis]);
  auto parts =
      g.builder.make("split", {g.gradient()}, {{"axis", static_cast<int64_t>(axis)}, {"sizes", sizes}})->results();
  return llvm::SmallVector<Value, 4>(parts.begin(), parts.end());
}

// --- gather, scatter_add along an axis by integer indices of any shape

llvm::Expected<ResultTypes> inferGather(const OpSite &site) {
  auto axis = checkedAxis(site, site.type(0));
  if (!axis) return axis.takeError();
  if (!isInteger(site.type(1).dtype)) return opError("indices must be integers, are {0}", site.type(1).str());
  Shape shape(site.type(0).shape.begin(), site.type(0).shape.begin() + *axis);
  shape.append(site.type(1).shape.begin(), site.type(1).shape.end());
  shape.append(site.type(0).shape.begin() + *axis + 1, site.type(0).shape.end());
  return ResultTypes{site.type(0).withShape(std::move(shape))};
}

// Visits (element of the table, element of the gathered tensor). An index outside the table visits nothing: gather
// gives 0 there and scatter_add drops it, on every back end. Negative indices count from the end.
template <typename Visit>
void forEachGathered(llvm::ArrayRef<int64_t> table, unsigned axis, const RefTensor &indices, Visit visit) {
  int64_t outer = count(table.take_front(axis)), n = table[axis], inner = count(table.drop_front(axis + 1));
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t k = 0; k < indices.elements(); ++k) {
      auto index = static_cast<int64_t>(indices.data[k]);
      if (index < 0) index += n;
      if (index < 0 || index >= n) continue;
      for (int64_t i = 0; i < inner; ++i) visit((o * n + index) * inner + i, (o * indices.elements() + k) * inner + i);
    }
}

void gatherReference(const RefCall &call) {
  const RefTensor &x = *call.inputs[0];
  forEachGathered(x.shape, call.site.axis("axis", x.shape.size()), *call.inputs[1],
                  [&](int64_t from, int64_t to) { call.outputs[0].data[to] = x.data[from]; });
  call.outputs[0].scale = x.scale;
}

llvm::SmallVector<Value, 4> gatherGradient(const GradientSite &g) {
  Value x = g.op.operand(0u);
  return {g.builder.op("scatter_add", {g.gradient(), g.op.operand(1)},
                       {{"axis", g.op.attr<int64_t>("axis")}, {"shape", x.type().shape}}),
          Value()};
}

llvm::Expected<ResultTypes> inferScatterAdd(const OpSite &site) {
  const Shape &shape = site.attr<Shape>("shape");
  auto axis = checkedAxis(site, site.type(0).withShape(shape));
  if (!axis) return axis.takeError();
  if (!isInteger(site.type(1).dtype)) return opError("indices must be integers, are {0}", site.type(1).str());
  Shape expected(shape.begin(), shape.begin() + *axis);
  expected.append(site.type(1).shape.begin(), site.type(1).shape.end());
  expected.append(shape.begin() + *axis + 1, shape.end());
  if (site.type(0).shape != expected)
    return opError("updates must be [{0}] for indices {1} into [{2}], are {3}", str(llvm::ArrayRef<Dim>(expected)),
                   site.type(1).str(), str(llvm::ArrayRef<Dim>(shape)), site.type(0).str());
  return ResultTypes{site.type(0).withShape(shape)};
}

void scatterAddReference(const RefCall &call) {
  RefTensor &y = call.outputs[0];
  forEachGathered(y.shape, call.site.axis("axis", y.shape.size()), *call.inputs[1],
                  [&](int64_t to, int64_t from) { y.data[to] += call.inputs[0]->data[from]; });
  for (double &v : y.data)
    if (isNarrowFloat(y.dtype)) v = roundTo(y.dtype, v);
}

llvm::SmallVector<Value, 4> scatterAddGradient(const GradientSite &g) {
  return {g.builder.op("gather", {g.gradient(), g.op.operand(1)}, {{"axis", g.op.attr<int64_t>("axis")}}), Value()};
}

// --- iota

llvm::Expected<ResultTypes> inferIota(const OpSite &site) {
  const Shape &shape = site.attr<Shape>("shape");
  TensorType type{site.attr<DType>("dtype"), shape};
  auto axis = checkedAxis(site, type);
  if (!axis) return axis.takeError();
  return ResultTypes{std::move(type)};
}

void iotaReference(const RefCall &call) {
  unsigned axis = call.site.axis("axis", call.outputs[0].shape.size());
  forEachIndex(call.outputs[0].shape, [&](llvm::ArrayRef<int64_t> index, int64_t i) {
    call.outputs[0].data[i] = static_cast<double>(index[axis]);
  });
}

} // namespace

llvm::ArrayRef<OpDef> movementOps() {
  static const std::vector<OpDef> ops = {
      op("reshape")
          .summary("the same elements in row-major order under another shape")
          .quantised()
          .operands({"x"})
          .required("shape", AttrKind::shape)
          .note("of the result, with as many elements")
          .lowering(Lowering::view)
          .infer(inferReshape)
          .reference(copyReference)
          .gradient(reshapeGradient),
      op("transpose")
          .summary("dims in another order: result dim i is operand dim perm[i]")
          .quantised()
          .operands({"x"})
          .required("perm", AttrKind::integers)
          .note("result dim i is operand dim perm[i]")
          .lowering(Lowering::indexMap)
          .infer(inferTranspose)
          .reference(transposeReference)
          .gradient(transposeGradient),
      op("broadcast")
          .summary("repeated along new or size-1 dims")
          .quantised()
          .operands({"x"})
          .required("shape", AttrKind::shape)
          .note("of the result")
          .lowering(Lowering::indexMap)
          .infer(inferBroadcast)
          .reference(broadcastReference)
          .gradient(broadcastGradient),
      op("slice")
          .summary("size elements of each dim from start, by step")
          .quantised()
          .operands({"x"})
          .required("start", AttrKind::shape)
          .note("first element read of each dim")
          .required("size", AttrKind::shape)
          .note("of the result")
          .attr({"step", AttrKind::integers, AttrValue(std::vector<int64_t>()), false, {}, {}})
          .note("between elements of each dim, not 0; empty: 1")
          .lowering(Lowering::indexMap)
          .infer(inferSlice)
          .reference(sliceReference)
          .gradient(sliceGradient),
      op("slice_grad")
          .summary("zeros of shape with x at the places a strided slice reads")
          .operands({"x"})
          .required("start", AttrKind::shape)
          .note("as of the slice")
          .required("shape", AttrKind::shape)
          .note("of the result: what the slice read from")
          .attr({"step", AttrKind::integers, AttrValue(std::vector<int64_t>()), false, {}, {}})
          .note("as of the slice")
          .lowering(Lowering::indexMap)
          .infer(inferSliceGrad)
          .reference(sliceGradReference),
      op("pad")
          .summary("value before and after each dim")
          .operands({"x"})
          .required("before", AttrKind::shape)
          .note("elements added in front of each dim")
          .required("after", AttrKind::shape)
          .note("elements added behind each dim")
          .real("value", 0.0)
          .note("of the added elements")
          .lowering(Lowering::indexMap)
          .infer(inferPad)
          .reference(padReference)
          .gradient(padGradient),
      op("split")
          .summary("consecutive parts along an axis")
          .quantised()
          .operands({"x"})
          .integer("axis", -1)
          .note("dim that is cut")
          .required("sizes", AttrKind::shape)
          .note("of the parts; they add up to the dim")
          .lowering(Lowering::indexMap)
          .infer(inferSplit)
          .reference(splitReference)
          .gradient(splitGradient),
      op("concat")
          .summary("parts joined along an axis")
          .operands({"x", "parts..."})
          .integer("axis", -1)
          .note("dim that grows")
          .lowering(Lowering::indexMap)
          .infer(inferConcat)
          .reference(concatReference)
          .gradient(concatGradient),
      op("gather")
          .summary("slices of x along axis at indices; 0 where an index is outside")
          .quantised()
          .operands({"x", "indices"})
          .integer("axis", 0)
          .note("dim of x that indices select from")
          .untyped({1})
          .lowering(Lowering::indexMap)
          .infer(inferGather)
          .reference(gatherReference)
          .gradient(gatherGradient),
      op("scatter_add")
          .summary("zeros of shape, plus each update at its index along axis, in ascending order of position")
          .precision(PrecisionClass::wide)
          .operands({"updates", "indices"})
          .integer("axis", 0)
          .note("dim of the result that indices select")
          .required("shape", AttrKind::shape)
          .note("of the result")
          .untyped({1})
          .lowering(Lowering::scatter)
          .infer(inferScatterAdd)
          .reference(scatterAddReference)
          .gradient(scatterAddGradient),
      op("iota")
          .summary("0, 1, 2, ... along an axis")
          .operands({})
          .required("shape", AttrKind::shape)
          .note("of the result")
          .integer("axis", -1)
          .note("dim that is counted")
          .attr({"dtype", AttrKind::dtype, AttrValue(DType::i32), false, {}, {}})
          .note("of the result")
          .lowering(Lowering::indexMap)
          .infer(inferIota)
          .reference(iotaReference)
          .gradient([](const GradientSite &) -> llvm::SmallVector<Value, 4> { return {}; }),
  };
  return ops;
}

} // namespace fusor::ir
