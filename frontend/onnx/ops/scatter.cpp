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

// A cache in which `update` stands from the index of its sequence (dim 0) on, along `axis`; circular: what is past the
// end goes on at the front.
void tensorScatter(NodeSite &s) {
  Term cache = s.in(0), update = s.in(1), starts = s.optionalIn(2);
  std::string mode = s.text("mode", "linear");
  unsigned axis = s.axis(s.integer("axis", -2), cache.rank());
  if (s.failed()) return;
  if (mode != "linear" && mode != "circular") return void(s.fail("attribute 'mode' = '{0}' is not supported", mode));
  if (axis == 0) return void(s.fail("axis must not be the batch's"));
  if (update.dtype() != cache.dtype() || update.rank() != cache.rank())
    return void(s.fail("the update {0} does not fit the cache {1}", update.typeText(), cache.typeText()));
  const Dim n = cache.dim(axis), count = update.dim(axis), batch = cache.dim(0);
  for (unsigned i = 0; i < cache.rank(); ++i)
    if (i == axis ? !s.writer().demandAtLeast(n - count, 0) : update.dim(i) != cache.dim(i))
      return void(s.fail("the update {0} does not fit the cache {1}", update.typeText(), cache.typeText()));
  if (starts && (starts.rank() != 1 || starts.dim(0) != batch))
    return void(s.fail("write_indices must be [{0}], are {1}", batch.str(), starts.typeText()));
  const bool wraps = mode == "circular";
  s.checkIndices(2, wraps ? n : n - count + Dim(1));
  if (s.failed()) return;

  Writer &w = s.writer();
  Shape along(cache.rank(), Dim(1)), each = along;
  along[axis] = n, each[0] = batch;
  // Which element of the update belongs at each place of the cache.
  Term from = w.iota(along, axis);
  if (starts) from = from - starts.cast(DType::i64).reshape(std::move(each));
  if (wraps) from = select(from < 0.0, from + w.extent(n, DType::i64), from);
  from = from.broadcast(cache.shape());
  Term isNew = both(from >= 0.0, from < w.extent(count, DType::i64));
  Term places = placesOf(s, update, select(isNew, from, w.constant(0, DType::i64)), axis);
  Term given = w.op("gather", {update.reshape({ir::product(update.shape())}), places}, {{"axis", int64_t(0)}});
  s.out(0, select(isNew, given, cache));
}

} // namespace

llvm::ArrayRef<OpEntry> scatterOperators() {
  static const std::vector<OpEntry> entries = {
      {"", "ScatterND", 11, scatterNd},
      {"", "ScatterElements", 11, scatterElements},
      {"", "Scatter", 9, scatterElements},
      {"", "TensorScatter", 24, tensorScatter},
  };
  return entries;
}

} // namespace fusor::onnx
