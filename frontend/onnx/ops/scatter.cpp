// Updates at indices.
#include "frontend/onnx/ops/places.h"

namespace fusor::onnx {

using ir::Dim, ir::DType, ir::Shape;

namespace {

// x [M, inner] with updates [N, inner] at rows `places` [N], combined by `reduction`.
Term scattered(NodeSite &s, Term x, Term updates, Term places, llvm::StringRef reduction) {
  Writer &w = s.writer();
  if (!x || !updates || !places) return {};
  if (updates.dtype() != x.dtype())
    return s.fail("updates are {0}, the tensor is {1}", ir::name(updates.dtype()), ir::name(x.dtype()));
  ir::Attrs at{{"axis", int64_t(0)}, {"shape", x.shape()}};
  if (reduction == "add") return x + w.op("scatter_add", {updates, places}, at).cast(x.dtype());
  if (reduction == "none") { // indices do not repeat, says the standard
    Shape rows{x.dim(0), Dim(1)};
    Term ones = w.constant(1, DType::f32).broadcast({places.dim(0), Dim(1)});
    Term hit = w.op("scatter_add", {ones, places}, {{"axis", int64_t(0)}, {"shape", rows}}) > 0.0;
    Term value = x.dtype() == DType::i1 ? updates.cast(DType::f32) : updates;
    return select(hit, w.op("scatter_add", {value, places}, at).cast(x.dtype()), x);
  }
  if (reduction != "max" && reduction != "min" && reduction != "mul")
    return s.fail("attribute 'reduction' = '{0}' is not supported", reduction);
  // [N, M, inner]: each update where its row is this one, else what changes nothing.
  Dim n = places.dim(0), m = x.dim(0), inner = x.dim(1);
  if (auto error = w.checkSize({n, m, inner})) return s.fail("{0}", llvm::toString(std::move(error)));
  Dim dense = n * m * inner;
  if (!dense.isConstant() || dense.value() > kMaxDense)
    return s.fail("reduction = {0} is supported up to {1} places times updates", reduction, kMaxDense);
  Term here = places.reshape({n, Dim(1), Dim(1)}) == w.iota({Dim(1), m, Dim(1)}, 1);
  Term own = x.reshape({Dim(1), m, inner}).broadcast({Dim(1), m, inner});
  Term given = updates.reshape({n, Dim(1), inner});
  if (reduction == "mul") {
    Term factors = select(here, given.broadcast({n, m, inner}), w.constant(1, x.dtype()).broadcast({n, m, inner}));
    for (int64_t left = n.value(); left > 1 && factors; left = (left + 1) / 2) {
      int64_t half = left / 2;
      Term y = factors.part(0, Dim(0), Dim(half)) * factors.part(0, Dim(half), Dim(half));
      factors = left % 2 ? w.concat({y, factors.part(0, Dim(2 * half), Dim(1))}, 0) : y;
    }
    return n.is(0) ? x : (own * factors).reshape(x.shape());
  }
  Term all = select(here, given.broadcast({n, m, inner}), own.broadcast({n, m, inner}));
  Term best = n.is(0) ? own : all.reduce(reduction == "max" ? "reduce_max" : "reduce_min", {0});
  return w.op(reduction, {own, best}).reshape(x.shape());
}

void scatterNd(NodeSite &s) {
  Term x = s.in(0), indices = s.in(1), updates = s.in(2);
  std::string reduction = s.version() >= 16 ? s.text("reduction", "none") : "none";
  auto rows = rowsOf(s, x.shape(), indices, 0);
  if (!rows || !updates) return;
  Dim count = ir::product(rows->places.shape()), m = product(x.shape(), 0, rows->named),
      inner = product(x.shape(), rows->named, x.rank());
  Shape all = x.shape(), expected = rows->places.shape();
  expected.append(all.begin() + rows->named, all.end());
  if (updates.shape() != expected)
    return void(s.fail("updates must be [{0}], are {1}", ir::str(llvm::ArrayRef<Dim>(expected)), updates.typeText()));
  Term y =
      scattered(s, x.reshape({m, inner}), updates.reshape({count, inner}), rows->places.reshape({count}), reduction);
  s.out(0, y.reshape(x.shape()));
}

void scatterElements(NodeSite &s) {
  Term x = s.in(0), indices = s.in(1), updates = s.in(2);
  unsigned axis = s.axis(s.integer("axis", 0), x.rank());
  std::string reduction = s.version() >= 16 ? s.text("reduction", "none") : "none";
  if (s.failed()) return;
  s.checkIndices(1, x.dim(axis));
  Term places = placesOf(s, x, indices, axis);
  if (!places || !updates) return;
  if (updates.shape() != indices.shape()) return void(s.fail("updates must have the shape of indices"));
  Dim count = ir::product(indices.shape()), m = ir::product(x.shape());
  Term y = scattered(s, x.reshape({m, Dim(1)}), updates.reshape({count, Dim(1)}), places.reshape({count}), reduction);
  s.out(0, y.reshape(x.shape()));
}

} // namespace

llvm::ArrayRef<OpEntry> scatterOperators() {
  static const std::vector<OpEntry> entries = {
      {"", "ScatterND", 11, scatterNd},
      {"", "ScatterElements", 11, scatterElements},
      {"", "Scatter", 9, scatterElements},
  };
  return entries;
}

} // namespace fusor::onnx
