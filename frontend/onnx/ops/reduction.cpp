// Reductions over any set of axes.
#include "frontend/onnx/ops/common.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::onnx {

using ir::Dim, ir::DType, ir::Shape;

std::vector<int64_t> allDims(unsigned rank) {
  std::vector<int64_t> dims(rank);
  for (unsigned i = 0; i < rank; ++i) dims[i] = i;
  return dims;
}

Dim product(const Shape &shape, unsigned first, unsigned last) {
  Dim result(1);
  for (unsigned i = first; i < last && i < shape.size(); ++i) result = result * shape[i];
  return result;
}

std::optional<std::vector<int64_t>> axesOf(NodeSite &s, unsigned rank, bool asInput) {
  std::vector<int64_t> given;
  if (!asInput)
    given = s.list("axes");
  else if (s.has(1)) {
    auto values = s.integers(1, "axes");
    if (!values) return std::nullopt;
    given = std::move(*values);
  }
  auto axes = s.axes(given, rank);
  if (s.failed()) return std::nullopt;
  return axes;
}

namespace {

// The product over `axes`, which must be numbers: halves are multiplied until one is left.
Term multiplied(Term x, llvm::ArrayRef<int64_t> axes) {
  for (int64_t axis : axes) {
    if (!x) return x;
    if (!x.dim(axis).isConstant())
      return x.writer().fail("a product over the dim {0} is not supported: its size must be a number",
                             x.dim(axis).str());
    int64_t n = x.dim(axis).value();
    if (n == 0) {
      Shape shape = x.shape();
      shape[axis] = Dim(1);
      x = x.writer().constant(1, x.dtype()).broadcast(shape);
      continue;
    }
    for (; n > 1 && x; n = (n + 1) / 2) {
      int64_t half = n / 2;
      Term y = x.part(axis, Dim(0), Dim(half)) * x.part(axis, Dim(half), Dim(half));
      x = n % 2 ? x.writer().concat({y, x.part(axis, Dim(2 * half), Dim(1))}, axis) : y;
    }
  }
  return x;
}

struct Reduction {
  Term x;
  std::vector<int64_t> axes;
  bool keep = true;
};

// Operand, axes and keepdims; absent after a failure, or where nothing is to be reduced (`noop_with_empty_axes`).
std::optional<Reduction> reductionOf(NodeSite &s, int64_t axesAsInputSince) {
  Term x = s.in(0);
  bool asInput = s.version() >= axesAsInputSince;
  auto axes = axesOf(s, x.rank(), asInput);
  bool keep = s.integer("keepdims", 1) != 0;
  bool noop = asInput && s.integer("noop_with_empty_axes", 0) != 0;
  if (!axes || !x) return std::nullopt;
  if (axes->empty() && noop) {
    s.out(0, x);
    return std::nullopt;
  }
  if (axes->empty()) axes = allDims(x.rank());
  return Reduction{x, std::move(*axes), keep};
}

// `x`, whose reduced dims are 1, in the shape asked for.
void finish(NodeSite &s, const Reduction &r, Term y) {
  Shape shape;
  for (unsigned i = 0; i < r.x.rank(); ++i) {
    if (!llvm::is_contained(r.axes, i))
      shape.push_back(r.x.dim(i));
    else if (r.keep)
      shape.push_back(Dim(1));
  }
  s.out(0, y.reshape(std::move(shape)));
}

Term reduced(Term x, llvm::StringRef op, const std::vector<int64_t> &axes) {
  return axes.empty() ? x : x.reduce(op, axes);
}

// The smallest and the largest of the type, where no element is there to be found.
void extreme(NodeSite &s, llvm::StringRef op) {
  auto r = reductionOf(s, 18);
  if (!r) return;
  DType dtype = r->x.dtype();
  Term x = dtype == DType::i1 ? r->x.cast(DType::u8) : r->x;
  finish(s, *r, reduced(x, op, r->axes).cast(dtype));
}
void reduceMax(NodeSite &s) { extreme(s, "reduce_max"); }
void reduceMin(NodeSite &s) { extreme(s, "reduce_min"); }

void summed(NodeSite &s, int64_t axesAsInputSince) {
  if (auto r = reductionOf(s, axesAsInputSince)) finish(s, *r, reduced(r->x, "sum", r->axes));
}
void reduceSum(NodeSite &s) { summed(s, 13); }

void reduceMean(NodeSite &s) {
  auto r = reductionOf(s, 18);
  if (!r) return;
  DType dtype = r->x.dtype();
  Term x = r->x.isFloat() ? r->x : r->x.cast(DType::f64);
  finish(s, *r, castTo(reduced(x, "mean", r->axes), dtype));
}

void reduceProd(NodeSite &s) {
  auto r = reductionOf(s, 18);
  if (!r) return;
  Term x = r->x.isFloat() ? r->x.cast(wide(r->x.dtype())) : r->x; // one rounding at the end
  finish(s, *r, multiplied(x, r->axes).cast(r->x.dtype()));
}

// Those that are a sum of a function of the elements, with a function of the sum; both in f32 for narrow floats.
void composed(NodeSite &s, Term (*before)(Term), Term (*after)(Term)) {
  auto r = reductionOf(s, 18);
  if (!r) return;
  DType dtype = r->x.dtype();
  Term x = r->x.isFloat() ? r->x.cast(wide(dtype)) : r->x.cast(DType::f64);
  Term y = reduced(before ? before(x) : x, "sum", r->axes);
  finish(s, *r, castTo(after ? after(y) : y, dtype));
}
Term absolute(Term x) { return x.apply("abs"); }
Term squared(Term x) { return x * x; }
Term root(Term x) { return x.apply("sqrt"); }
Term logarithm(Term x) { return x.apply("log"); }
void reduceL1(NodeSite &s) { composed(s, absolute, nullptr); }
void reduceL2(NodeSite &s) { composed(s, squared, root); }
void reduceSumSquare(NodeSite &s) { composed(s, squared, nullptr); }
void reduceLogSum(NodeSite &s) { composed(s, nullptr, logarithm); }

void reduceLogSumExp(NodeSite &s) { // log(sum(exp(x - max))) + max, where max is a number
  auto r = reductionOf(s, 18);
  if (!r) return;
  DType dtype = r->x.dtype();
  Term x = r->x.isFloat() ? r->x.cast(wide(dtype)) : r->x.cast(DType::f64);
  Term top = reduced(x, "reduce_max", r->axes);
  if (!top) return;
  Term safe = select(top.apply("isinf"), s.writer().constant(0, top.dtype()), top);
  finish(s, *r, castTo(reduced((x - safe).apply("exp"), "sum", r->axes).apply("log") + safe, dtype));
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

} // namespace

llvm::ArrayRef<OpEntry> reductionOperators() {
  static const std::vector<OpEntry> entries = {
      {"", "ReduceSum", 1, reduceSum},
      {"", "ReduceMean", 1, reduceMean},
      {"", "ReduceMax", 1, reduceMax},
      {"", "ReduceMin", 1, reduceMin},
      {"", "ReduceProd", 1, reduceProd},
      {"", "ReduceL1", 1, reduceL1},
      {"", "ReduceL2", 1, reduceL2},
      {"", "ReduceSumSquare", 1, reduceSumSquare},
      {"", "ReduceLogSum", 1, reduceLogSum},
      {"", "ReduceLogSumExp", 1, reduceLogSumExp},
      {"", "CumSum", 11, cumSum},
  };
  return entries;
}

} // namespace fusor::onnx
