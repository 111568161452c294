// Where elements stand: the largest, the k largest, those that are not 0; and the other way, 1 where an index says.
#include "frontend/onnx/limits.h"
#include "frontend/onnx/ops/places.h"

namespace fusor::onnx {

using ir::Dim, ir::DType, ir::Shape;

namespace {

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

// One number, which files give as a float too.
std::optional<std::vector<Dim>> depthOf(NodeSite &s) {
  if (!ir::isFloat(s.type(1).dtype)) return s.dims(1, "depth");
  auto numbers = s.reals(1, "depth");
  if (!numbers) return std::nullopt;
  std::vector<Dim> dims;
  for (double number : *numbers) dims.push_back(Dim(static_cast<int64_t>(ir::roundTo(DType::i64, number))));
  return dims;
}

void oneHot(NodeSite &s) {
  Term indices = s.in(0), values = s.in(2);
  auto depth = depthOf(s);
  int64_t axis = s.integer("axis", -1);
  if (!depth || depth->size() != 1 || !indices || !values) return void(s.fail("depth must be one number"));
  if (values.rank() != 1 || !values.dim(0).is(2))
    return void(s.fail("values must be [off, on], are {0}", values.typeText()));
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

// Whether a stands before b by its value: the larger one, or the smaller one. NaN is larger than all.
Term isAhead(Term a, Term b, bool largest) {
  Term ahead = largest ? a > b : a < b;
  if (!ahead || !a.isFloat()) return ahead;
  Term x = (largest ? a : b).apply("isnan"), y = (largest ? b : a).apply("isnan");
  return a.writer().op("or", {ahead, both(x, y.apply("not"))});
}

// The rank of each element is how many stand before it: a comparison of each with each, [.., n, n]. Equal ones stand
// in their order.
void topK(NodeSite &s) {
  Term x = s.in(0);
  int64_t given = s.integer("axis", -1);
  std::optional<std::vector<Dim>> count;
  if (s.version() >= 10)
    count = s.dims(1, "k");
  else
    count = std::vector<Dim>{Dim(s.integer("k", -1))};
  bool largest = s.version() < 11 || s.flag("largest", true);
  if (s.version() >= 11) s.ignore("sorted"); // any order is right then
  unsigned axis = s.axis(given, x.rank());
  if (!s.failed() && (!count || count->size() != 1)) s.fail("k must be one number");
  if (s.failed()) return;
  const Dim n = x.dim(axis), &k = count->front();
  if ((k.isConstant() && k.value() < 0) || !s.writer().demandAtLeast(n - k, 0))
    return void(s.fail("k is {0} of {1} elements", k.str(), n.str()));
  int64_t dense = n.isConstant() ? n.value() : kMaxDense + 1;
  for (const Dim &dim : x.shape()) // symbols count as 1: how often it is done, not how large it is
    if (dim.isConstant() && dense <= kMaxDense) dense *= std::min(dim.value(), kMaxDense);
  if (dense > kMaxDense)
    return void(s.fail("of {0} along axis {1} is not supported: each element is compared with each, {2} times at most",
                       x.typeText(), axis, kMaxDense));

  Writer &w = s.writer();
  auto across = static_cast<int64_t>(axis), down = across + 1; // the element, and the one it is compared with
  Shape own = x.shape(), other = own, along(own.size() + 1, Dim(1)), below = along;
  own.insert(own.begin() + down, Dim(1)), other.insert(other.begin() + across, Dim(1));
  along[across] = n, below[down] = n;
  Term a = x.reshape(own), b = x.reshape(other), i = w.iota(along, across), j = w.iota(below, down);
  Term isBefore = select(j < i, isAhead(a, b, largest).apply("not"), isAhead(b, a, largest));
  Term rank = isBefore.cast(DType::i64).reduce("sum", {down}, false);
  // The index whose rank is 0, 1, .. k - 1.
  Shape places(own.size(), Dim(1));
  places[down] = k;
  Term isHere = rank.reshape(own) == w.iota(places, down);
  Term indices = select(isHere, i, w.constant(0, DType::i64)).reduce("sum", {across}, false);
  s.out(1, indices);
  if (s.wants(0))
    s.out(0,
          w.op("gather", {x.reshape({ir::product(x.shape())}), placesOf(s, x, indices, axis)}, {{"axis", int64_t(0)}}));
}

// [rank, count]: where the elements that are not 0 stand; how many there are must be known at import.
void nonZero(NodeSite &s) {
  ir::TensorType type = s.type(0);
  if (s.failed()) return;
  if (type.rank() == 0) return void(s.fail("of a scalar is not supported"));
  auto content = s.reals(0, "what is not 0");
  if (!content) return;
  std::vector<int64_t> places;
  for (size_t i = 0; i < content->size(); ++i)
    if ((*content)[i] != 0) places.push_back(static_cast<int64_t>(i));
  std::vector<int64_t> indices;
  int64_t inner = static_cast<int64_t>(content->size());
  for (const Dim &dim : type.shape) { // row-major: what is left of a place after the dims in front
    inner /= std::max<int64_t>(dim.value(), 1);
    for (int64_t place : places) indices.push_back(place / inner % dim.value());
  }
  auto *bytes = reinterpret_cast<const char *>(indices.data());
  s.outData(0, {DType::i64,
                {static_cast<int64_t>(type.rank()), static_cast<int64_t>(places.size())},
                std::make_shared<const std::vector<char>>(bytes, bytes + indices.size() * sizeof(int64_t))});
}

} // namespace

llvm::ArrayRef<OpEntry> rankingOperators() {
  static const std::vector<OpEntry> entries = {
      {"", "ArgMax", 1, argMax}, {"", "ArgMin", 1, argMin},   {"", "TopK", 1, topK},
      {"", "OneHot", 9, oneHot}, {"", "NonZero", 9, nonZero},
  };
  return entries;
}

} // namespace fusor::onnx
