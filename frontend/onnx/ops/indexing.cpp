// Elements by index, positions of elements, running sums.
#include "frontend/onnx/limits.h"
#include "frontend/onnx/ops/common.h"
#include "llvm/ADT/STLExtras.h"

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

// The place of each element of `indices` in x as one row: its own place in all dims but `axis`.
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

void gatherElements(NodeSite &s) {
  Term x = s.in(0), indices = s.in(1);
  unsigned axis = s.axis(s.integer("axis", 0), x.rank());
  if (s.failed()) return;
  s.checkIndices(1, x.dim(axis));
  Term places = placesOf(s, x, indices, axis);
  s.out(0, s.writer().op("gather", {x.reshape({ir::product(x.shape())}), places}, {{"axis", int64_t(0)}}));
}

// Places of rows of x that the last dim of `indices` names, below `batch` common leading dims; and how many dims it
// names.
struct Rows {
  Term places; // [batch..., more...]
  unsigned named = 0;
};
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

void gatherNd(NodeSite &s) {
  Term x = s.in(0), indices = s.in(1);
  int64_t batch = s.version() >= 12 ? s.integer("batch_dims", 0) : 0;
  if (batch < 0 || batch >= static_cast<int64_t>(std::max(1u, x.rank())))
    return void(s.fail("batch_dims {0} is not below the rank", batch));
  auto rows = rowsOf(s, x.shape(), indices, batch);
  if (!rows) return;
  Shape all = x.shape(), flat{product(all, 0, rows->named)};
  flat.append(all.begin() + rows->named, all.end());
  s.out(0, s.writer().op("gather", {x.reshape(std::move(flat)), rows->places}, {{"axis", int64_t(0)}}));
}

constexpr int64_t kMaxDense = int64_t(1) << 24; // elements of a comparison of every update with every place

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

// Sums of 1, 2, 4, ... neighbours: after step k element i holds the sum of the 2^k up to it. No sum with elements that
// it does not cover, so that an infinity stays where it is.
void cumSum(NodeSite &s) {
  Term x = s.in(0);
  auto given = s.integers(1, "axis");
  bool exclusive = s.integer("exclusive", 0) != 0, reverse = s.integer("reverse", 0) != 0;
  if (!given || given->size() != 1 || !x) return void(s.fail("axis must be one number"));
  unsigned axis = s.axis(given->front(), x.rank());
  if (s.failed()) return;
  if (!x.dim(axis).isConstant())
    return void(s.fail("along the dim {0} is not supported: its size must be a number", x.dim(axis).str()));
  int64_t n = x.dim(axis).value();
  DType dtype = x.dtype();
  if (x.isFloat()) x = x.cast(wide(dtype));
  if (reverse) x = x.reversed(axis);
  auto later = [&](Term t, int64_t by) { // moved by `by` places, with zeros in front
    Shape before(t.rank(), Dim(0)), after = before;
    before[axis] = Dim(by);
    return t.part(axis, Dim(0), Dim(n - by)).apply("pad", {{"before", before}, {"after", after}});
  };
  if (exclusive && n > 0) x = later(x, 1);
  for (int64_t by = 1; by < n; by *= 2) x = x + later(x, by);
  if (reverse) x = x.reversed(axis);
  s.out(0, x.cast(dtype));
}

void argReduce(NodeSite &s, const char *kind) {
  Term x = s.in(0);
  unsigned axis = s.axis(s.integer("axis", 0), x.rank());
  bool keep = s.integer("keepdims", 1) != 0, last = s.version() >= 12 && s.integer("select_last_index", 0) != 0;
  if (s.failed()) return;
  if (x.dim(axis).is(0)) return void(s.fail("there is no element along axis {0} of {1}", axis, x.typeText()));
  Term from = last ? x.reversed(axis) : x;
  Term y = from.apply("arg_reduce", {{"axis", static_cast<int64_t>(axis)}, {"keep", keep}, {"kind", std::string(kind)}})
               .cast(DType::i64);
  if (last) y = s.writer().extent(x.dim(axis), DType::i64) - 1.0 - y;
  s.out(0, y);
}
void argMax(NodeSite &s) { argReduce(s, "max"); }
void argMin(NodeSite &s) { argReduce(s, "min"); }

void oneHot(NodeSite &s) {
  Term indices = s.in(0), values = s.in(2);
  auto depth = s.dims(1, "depth");
  int64_t axis = s.integer("axis", -1);
  if (!depth || depth->size() != 1 || !indices || !values) return void(s.fail("depth must be one number"));
  const Dim &n = depth->front();
  unsigned at = s.axis(axis, indices.rank() + 1);
  if (s.failed()) return;
  if (n.isConstant() && (n.value() < 0 || n.value() > kMaxDim)) return void(s.fail("depth is {0}", n.value()));
  Shape wide = indices.shape(), along(indices.rank() + 1, Dim(1));
  wide.insert(wide.begin() + at, Dim(1));
  along[at] = n;
  Term hot = fromFront(castTo(indices, DType::i64), n).reshape(wide) == s.writer().iota(along, at);
  Term off = values.part(0, Dim(0), Dim(1)).reshape({}), on = values.part(0, Dim(1), Dim(1)).reshape({});
  s.out(0, select(hot, on, off));
}

} // namespace

llvm::ArrayRef<OpEntry> indexingOperators() {
  static const std::vector<OpEntry> entries = {
      {"", "GatherElements", 11, gatherElements},
      {"", "GatherND", 11, gatherNd},
      {"", "ScatterND", 11, scatterNd},
      {"", "ScatterElements", 11, scatterElements},
      {"", "Scatter", 9, scatterElements},
      {"", "CumSum", 11, cumSum},
      {"", "ArgMax", 1, argMax},
      {"", "ArgMin", 1, argMin},
      {"", "OneHot", 9, oneHot},
  };
  return entries;
}

} // namespace fusor::onnx
