// The same elements in the same order in another shape, copies of them, and shapes as values. On known tensors of sizes
// all of these are done at import.
#include "frontend/onnx/limits.h"
#include "frontend/onnx/ops/common.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::onnx {

using ir::Dim, ir::DType, ir::Shape;

namespace {

// 0 copies the dim of x unless `allowzero`, one -1 is what is left.
std::optional<Shape> requestedShape(NodeSite &s, const Shape &x, llvm::ArrayRef<Dim> asked, bool allowZero) {
  Shape shape;
  std::optional<unsigned> open;
  bool hasZero = false;
  for (unsigned i = 0; i < asked.size(); ++i) {
    Dim dim = asked[i];
    if (dim.is(-1)) {
      if (open) return s.fail("shape has more than one -1"), std::nullopt;
      open = i, dim = Dim(1);
    } else if (dim.is(0) && !allowZero) {
      if (i >= x.size()) return s.fail("shape copies dim {0} of a tensor with {1}", i, x.size()), std::nullopt;
      dim = x[i];
    } else if (dim.isConstant() && dim.value() < 0) {
      return s.fail("shape has a negative dim, {0}", dim.value()), std::nullopt;
    }
    hasZero |= dim.is(0);
    shape.push_back(std::move(dim));
  }
  if (auto error = s.writer().checkSize(shape)) return s.fail("{0}", llvm::toString(std::move(error))), std::nullopt;
  if (!open) return shape;
  if (hasZero) return s.fail("shape has a -1 that cannot be told: the other dims multiply to 0"), std::nullopt;
  auto rest = ir::product(x).divide(ir::product(shape));
  if (!rest)
    return s.fail("shape [{0}] does not divide the elements of [{1}]", ir::str(asked), ir::str(llvm::ArrayRef<Dim>(x))),
           std::nullopt;
  shape[*open] = *rest;
  return shape;
}

void reshape(NodeSite &s) {
  Term x = s.in(0);
  std::optional<std::vector<Dim>> asked;
  if (s.version() < 5) {
    asked.emplace();
    for (int64_t dim : s.list("shape")) asked->push_back(Dim(dim));
    s.ignore("consumed_inputs");
  } else {
    asked = s.dims(1, "shape");
  }
  bool allowZero = s.version() >= 14 && s.integer("allowzero", 0) != 0;
  if (!asked || !x) return;
  if (auto shape = requestedShape(s, x.shape(), *asked, allowZero)) s.out(0, x.reshape(std::move(*shape)));
}

void flatten(NodeSite &s) {
  Term x = s.in(0);
  int64_t axis = s.integer("axis", 1), rank = x.rank();
  if (axis < -rank || axis > rank) return void(s.fail("axis {0} is not in {1}..{2}", axis, -rank, rank));
  if (axis < 0) axis += rank;
  s.out(0, x.reshape({product(x.shape(), 0, axis), product(x.shape(), axis, rank)}));
}

void squeeze(NodeSite &s) {
  Term x = s.in(0);
  auto axes = axesOf(s, x.rank(), s.version() >= 13);
  if (!axes || !x) return;
  bool all = s.version() >= 13 ? !s.has(1) : !s.hasAttr("axes");
  Shape shape;
  for (unsigned i = 0; i < x.rank(); ++i) {
    bool named = llvm::is_contained(*axes, i);
    if (named && !x.dim(i).is(1)) return void(s.fail("dim {0} of {1} is not 1", i, x.typeText()));
    if (all && !x.dim(i).isConstant())
      return void(s.fail("without axes, whether dim {0} of {1} is dropped is not known", i, x.typeText()));
    if (!named && !(all && x.dim(i).is(1))) shape.push_back(x.dim(i));
  }
  s.out(0, x.reshape(std::move(shape)));
}

void unsqueeze(NodeSite &s) {
  Term x = s.in(0);
  std::optional<std::vector<int64_t>> given = s.version() >= 13 ? s.integers(1, "axes") : s.list("axes");
  if (!given || !x) return;
  if (given->size() > kMaxRank) return void(s.fail("axes has {0} entries", given->size()));
  unsigned rank = x.rank() + given->size();
  auto axes = s.axes(*given, rank);
  if (s.failed()) return;
  Shape shape;
  for (unsigned i = 0, from = 0; i < rank; ++i) shape.push_back(llvm::is_contained(axes, i) ? Dim(1) : x.dim(from++));
  s.out(0, x.reshape(std::move(shape)));
}

void expand(NodeSite &s) {
  Term x = s.in(0);
  auto asked = s.dims(1, "shape");
  if (!asked || !x) return;
  Shape shape(asked->begin(), asked->end()), own = x.shape();
  for (const Dim &dim : shape)
    if (dim.isConstant() && dim.value() < 0) return void(s.fail("shape has a negative dim, {0}", dim.value()));
  auto together = ir::broadcastShapes({own, shape});
  if (!together)
    return void(s.fail("{0} does not broadcast with [{1}]", x.typeText(), ir::str(llvm::ArrayRef<Dim>(shape))));
  s.out(0, x.broadcast(std::move(*together)));
}

void shapeOf(NodeSite &s) {
  ir::TensorType type = s.type(0);
  if (s.failed()) return;
  int64_t rank = type.rank(), start = 0, end = rank;
  if (s.version() >= 15) {
    auto limited = [rank](int64_t at) {
      return std::clamp<int64_t>(at < 0 ? std::max(at, -rank) + rank : at, 0, rank);
    };
    start = limited(s.integer("start", 0));
    if (s.hasAttr("end")) end = limited(s.integer("end", rank));
  }
  Known known{DType::i64, {std::max<int64_t>(0, end - start)}, {}};
  for (int64_t i = start; i < end; ++i) known.elements.push_back(type.shape[i]);
  s.outKnown(0, std::move(known));
}
void sizeOf(NodeSite &s) {
  ir::TensorType type = s.type(0);
  if (!s.failed()) s.outKnown(0, {DType::i64, {}, {type.elements()}});
}

} // namespace

llvm::ArrayRef<OpEntry> shapeOperators() {
  static const std::vector<OpEntry> entries = {
      {"", "Reshape", 1, reshape, 1}, {"", "Flatten", 1, flatten, 1},
      {"", "Squeeze", 1, squeeze, 1}, {"", "Unsqueeze", 1, unsqueeze, 1},
      {"", "Expand", 8, expand, 1},   {"", "Shape", 1, shapeOf},
      {"", "Size", 1, sizeOf},
  };
  return entries;
}

} // namespace fusor::onnx
