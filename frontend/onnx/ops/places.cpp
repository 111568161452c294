#include "frontend/onnx/ops/places.h"

namespace fusor::onnx {

using ir::Dim, ir::DType, ir::Shape;

Term fromFront(Term indices, const Dim &size) {
  if (!indices) return indices;
  indices = indices.cast(DType::i64);
  return select(indices < 0.0, indices + indices.writer().extent(size, DType::i64), indices);
}

namespace {

// Row-major strides of the first `count` dims, as scalars.
llvm::SmallVector<Dim, 4> strides(const Shape &shape, unsigned count) {
  llvm::SmallVector<Dim, 4> result(count, Dim(1));
  for (unsigned i = count; i-- > 1;) result[i - 1] = result[i] * shape[i];
  return result;
}

Term scaledBy(Term index, const Dim &stride) {
  if (!index || stride.is(1)) return index;
  return index * index.writer().extent(stride, DType::i64);
}

} // namespace

Term placesOf(NodeSite &s, Term x, Term indices, unsigned axis) {
  Writer &w = s.writer();
  if (!x || !indices) return {};
  if (indices.rank() != x.rank())
    return s.fail("indices must have the rank of {0}, are {1}", x.typeText(), indices.typeText());
  if (auto error = w.checkSize({ir::product(x.shape())})) return s.fail("{0}", llvm::toString(std::move(error)));
  auto steps = strides(x.shape(), x.rank());
  Term place = scaledBy(fromFront(indices, x.dim(axis)), steps[axis]);
  for (unsigned i = 0; i < x.rank(); ++i) {
    if (i == axis) continue;
    if (indices.dim(i) != x.dim(i) && !w.demandAtLeast(x.dim(i) - indices.dim(i), 0))
      return s.fail("indices {0} are larger than {1} in dim {2}", indices.typeText(), x.typeText(), i);
    Shape along(x.rank(), Dim(1));
    along[i] = indices.dim(i);
    place = place + scaledBy(w.iota(along, i), steps[i]);
  }
  return place;
}

std::optional<Rows> rowsOf(NodeSite &s, const Shape &x, Term indices, unsigned batch) {
  Writer &w = s.writer();
  if (!indices || indices.rank() == 0 || !indices.dim(-1).isConstant())
    return s.fail("the last dim of indices must be a number"), std::nullopt;
  int64_t k = indices.dim(-1).value();
  unsigned last = indices.rank() - 1;
  if (batch > last || batch + k > static_cast<int64_t>(x.size()))
    return s.fail("indices name {0} dims behind {1}, the tensor has {2}", k, batch, x.size()), std::nullopt;
  if (auto error = w.checkSize({ir::product(x)})) return s.fail("{0}", llvm::toString(std::move(error))), std::nullopt;
  unsigned named = batch + static_cast<unsigned>(k);
  auto steps = strides(x, named);
  for (int64_t i = 0; i < k; ++i) s.checkIndices(1, x[batch + i], static_cast<unsigned>(i), static_cast<unsigned>(k));
  if (s.failed()) return std::nullopt;
  Shape places = indices.shape();
  places.pop_back();
  Term sum = w.constant(0, DType::i64).broadcast(places);
  for (unsigned i = 0; i < batch; ++i) {
    if (indices.dim(i) != x[i])
      return s.fail("indices {0} must agree with the tensor in the first {1} dims", indices.typeText(), batch),
             std::nullopt;
    Shape along(places.size(), Dim(1));
    along[i] = x[i];
    sum = sum + scaledBy(w.iota(along, i), steps[i]);
  }
  for (int64_t i = 0; i < k; ++i) {
    Term one = indices.part(last, Dim(i), Dim(1)).reshape(places);
    sum = sum + scaledBy(fromFront(one, x[batch + i]), steps[batch + i]);
  }
  if (!sum) return std::nullopt;
  return Rows{sum, named};
}

} // namespace fusor::onnx
