// The same elements in another shape or order. On known tensors of sizes all of these are done at import.
#include "frontend/onnx/limits.h"
#include "frontend/onnx/ops/common.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::onnx {

using ir::Dim, ir::DType, ir::Shape;

namespace {

// --- shapes

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

void transpose(NodeSite &s) {
  Term x = s.in(0);
  std::vector<int64_t> perm = s.list("perm");
  if (!s.hasAttr("perm"))
    for (unsigned i = x.rank(); i-- > 0;) perm.push_back(i);
  s.out(0, x.transpose(std::move(perm)));
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

// [d0, d1] -> [1, d0, 1, d1] -> [r0, d0, r1, d1] -> [r0*d0, r1*d1]
void tile(NodeSite &s) {
  Term x = s.in(0);
  auto repeats = s.dims(1, "repeats");
  if (!repeats || !x) return;
  if (repeats->size() != x.rank())
    return void(s.fail("repeats has {0} entries for {1}", repeats->size(), x.typeText()));
  Shape apart, wide, joined;
  for (unsigned i = 0; i < x.rank(); ++i) {
    const Dim &times = (*repeats)[i];
    if (times.isConstant() && (times.value() < 0 || times.value() > kMaxDim))
      return void(s.fail("repeats has {0}", times.value()));
    apart.append({Dim(1), x.dim(i)});
    wide.append({times, x.dim(i)});
    auto size = foldMul({times, x.dim(i)});
    if (!size) return void(s.fail("{0} times dim {1} is too large", times.str(), x.dim(i).str()));
    joined.push_back(*size);
  }
  s.out(0, x.reshape(std::move(apart)).broadcast(std::move(wide)).reshape(std::move(joined)));
}

// --- parts

void concat(NodeSite &s) {
  llvm::SmallVector<Term, 8> parts;
  for (unsigned i = 0; i < s.inputCount(); ++i) parts.push_back(s.in(i));
  if (parts.empty()) return void(s.fail("has no input"));
  int64_t axis = s.integer("axis", 1);
  if (s.version() >= 4 && !s.hasAttr("axis")) s.fail("attribute 'axis' is missing");
  s.axis(axis, parts[0].rank());
  s.out(0, s.writer().concat(parts, axis));
}

void split(NodeSite &s) {
  Term x = s.in(0);
  unsigned axis = s.axis(s.integer("axis", 0), x.rank());
  bool byInput = s.version() >= 13 && s.has(1);
  std::vector<int64_t> listed = s.version() < 13 ? s.list("split") : std::vector<int64_t>();
  int64_t parts = s.outputCount();
  if (s.version() >= 18 && s.hasAttr("num_outputs")) {
    parts = s.integer("num_outputs", 0);
    if (byInput) s.fail("has both split and num_outputs");
    if (parts != s.outputCount()) s.fail("num_outputs is {0}, the node has {1} results", parts, s.outputCount());
  }
  if (s.failed()) return;
  Shape sizes;
  if (byInput) {
    auto given = s.dims(1, "split");
    if (!given) return;
    sizes.assign(given->begin(), given->end());
  } else if (!listed.empty()) {
    for (int64_t size : listed) sizes.push_back(Dim(size));
  } else {
    const Dim &n = x.dim(axis);
    if (n.isConstant()) {
      int64_t size = (n.value() + parts - 1) / parts;
      if (s.version() < 18 && n.value() % parts)
        return void(s.fail("dim {0} does not divide into {1} parts", n.value(), parts));
      for (int64_t i = 0, left = n.value(); i < parts; ++i, left = std::max<int64_t>(0, left - size))
        sizes.push_back(Dim(std::min(size, left)));
    } else {
      auto size = n.divide(Dim(parts));
      if (!size) return void(s.fail("dim {0} does not divide into {1} parts", n.str(), parts));
      sizes.assign(parts, *size);
    }
  }
  if (static_cast<int64_t>(sizes.size()) != s.outputCount())
    return void(s.fail("splits into {0} parts, the node has {1} results", sizes.size(), s.outputCount()));
  auto results = s.writer().ops("split", {x}, {{"axis", static_cast<int64_t>(axis)}, {"sizes", sizes}}, sizes.size());
  for (unsigned i = 0; i < results.size(); ++i) s.out(i, results[i]);
}

struct Cut {
  Dim start, size;
  int64_t step = 1;
};

// `bound` as a place in a dim of `n` elements, before it is limited to the dim; numbers at the ends of int64 are "all".
Dim placed(const Dim &bound, const Dim &n) {
  if (!bound.isConstant()) return bound;
  if (bound.value() <= -kMaxDim) return Dim(0);
  if (bound.value() >= kMaxDim) return n;
  return bound.value() < 0 ? n + bound : bound;
}

std::optional<Cut> cutOfNumbers(NodeSite &s, int64_t start, int64_t end, int64_t step, int64_t n) {
  auto from = [n](int64_t bound) { return bound < 0 ? (bound < -n ? -1 : bound + n) : bound; };
  start = from(start), end = from(end);
  if (step > 0) {
    start = std::clamp<int64_t>(start, 0, n), end = std::clamp<int64_t>(end, 0, n);
  } else {
    start = std::clamp<int64_t>(start, -1, n - 1), end = std::clamp<int64_t>(end, -1, n - 1);
  }
  int64_t span = step > 0 ? end - start : start - end;
  if (span <= 0) return Cut{Dim(0), Dim(0), 1};
  uint64_t by = step > 0 ? static_cast<uint64_t>(step) : -static_cast<uint64_t>(step);
  auto count = static_cast<int64_t>((static_cast<uint64_t>(span) + by - 1) / by);
  if (count == 1) step = step > 0 ? 1 : -1; // the step is not taken, and may be as large as an int64
  return Cut{Dim(start), Dim(count), step};
}

// Sizes that inputs fix: what must hold for the bounds to lie in the dim is demanded of the inputs.
std::optional<Cut> cutOfSizes(NodeSite &s, const Dim &start, const Dim &end, int64_t step, const Dim &n) {
  Writer &w = s.writer();
  auto refused = [&](llvm::StringRef why) {
    s.fail("the part {0}..{1} of a dim {2} is not supported: {3}", start.str(), end.str(), n.str(), why);
    return std::nullopt;
  };
  if (step < 0) {
    bool whole = (start.is(-1) || (start.isConstant() && start.value() >= kMaxDim)) && end.isConstant() &&
                 end.value() <= -kMaxDim;
    if (!whole || step != -1) return refused("backwards, only the whole dim is");
    return Cut{n - Dim(1), n, -1};
  }
  Dim first = placed(start, n), last = placed(end, n), size = last - first;
  if (!isModest(first) || !isModest(last) || !isModest(size)) return refused("its bounds are too large");
  if (size.isConstant() && size.value() <= 0) return Cut{Dim(0), Dim(0), 1};
  // Two symbols against a number (P..P+S of 64): the runtime checks a slice when it knows the sizes. A Slice of ONNX
  // would be shorter there, which the shape of the result does not say.
  bool known = w.demandAtLeast(first, 0) && w.demandAtLeast(size, 0) &&
               (w.demandAtLeast(n - last, 0) || (n.isConstant() && isNeverNegative(last)));
  if (!known) return refused("whether its bounds lie in the dim is not known");
  if (step == 1) return Cut{first, size, 1};
  auto count = size.divide(Dim(step));
  if (!count) return refused("its size is not a multiple of the step");
  return Cut{first, *count, step};
}

void slice(NodeSite &s) {
  Term x = s.in(0);
  std::optional<std::vector<Dim>> starts, ends;
  std::optional<std::vector<int64_t>> axes, steps;
  if (s.version() < 10) {
    auto dimsOf = [](std::vector<int64_t> list) { return std::vector<Dim>(list.begin(), list.end()); };
    starts = dimsOf(s.list("starts")), ends = dimsOf(s.list("ends"));
    axes = s.list("axes");
    if (!s.hasAttr("axes")) axes.reset();
  } else {
    starts = s.dims(1, "starts"), ends = s.dims(2, "ends");
    if (s.has(3)) axes = s.integers(3, "axes");
    if (s.has(4)) steps = s.integers(4, "steps");
  }
  if (s.failed() || !x || !starts || !ends) return;
  if (!axes) axes = allDims(starts->size());
  if (!steps) steps = std::vector<int64_t>(starts->size(), 1);
  if (ends->size() != starts->size() || axes->size() != starts->size() || steps->size() != starts->size())
    return void(s.fail("starts, ends, axes and steps have {0}, {1}, {2} and {3} entries", starts->size(), ends->size(),
                       axes->size(), steps->size()));
  auto dims = s.axes(*axes, x.rank());
  if (s.failed()) return;
  Shape start(x.rank(), Dim(0)), size = x.shape();
  std::vector<int64_t> step(x.rank(), 1);
  for (unsigned i = 0; i < dims.size(); ++i) {
    const Dim &n = x.dim(dims[i]), &from = (*starts)[i], &to = (*ends)[i];
    int64_t by = (*steps)[i];
    if (by == 0) return void(s.fail("steps has a 0"));
    bool numbers = n.isConstant() && from.isConstant() && to.isConstant();
    auto cut = numbers ? cutOfNumbers(s, from.value(), to.value(), by, n.value()) : cutOfSizes(s, from, to, by, n);
    if (!cut) return;
    start[dims[i]] = cut->start, size[dims[i]] = cut->size, step[dims[i]] = cut->step;
  }
  s.out(0, x.slice(std::move(start), std::move(size), std::move(step)));
}

void gather(NodeSite &s) {
  Term x = s.in(0);
  unsigned axis = s.axis(s.integer("axis", 0), x.rank());
  if (s.failed()) return;
  s.checkIndices(1, x.dim(axis));
  Term indices = s.in(1);
  s.out(0, s.writer().op("gather", {x, indices}, {{"axis", static_cast<int64_t>(axis)}}));
}

// --- pad

void pad(NodeSite &s) {
  Term x = s.in(0);
  std::string mode = s.text("mode", "constant");
  std::optional<std::vector<int64_t>> pads;
  double value = 0;
  std::vector<int64_t> axes = allDims(x.rank());
  if (s.version() < 11) {
    pads = s.list(s.version() < 2 ? "paddings" : "pads");
    value = s.real("value", 0);
  } else {
    pads = s.integers(1, "pads");
    if (s.has(2))
      if (auto given = s.reals(2, "the padding value"); given && !given->empty()) value = given->front();
    if (s.version() >= 18 && s.has(3)) {
      auto given = s.integers(3, "axes");
      if (given) axes = s.axes(*given, x.rank());
    }
  }
  if (s.failed() || !x || !pads) return;
  if (mode != "constant") return void(s.fail("attribute 'mode' = '{0}' is not supported, constant is", mode));
  if (pads->size() != 2 * axes.size())
    return void(s.fail("pads has {0} entries for {1} dims", pads->size(), axes.size()));
  Shape before(x.rank(), Dim(0)), after = before, start = before, size = x.shape();
  bool cuts = false;
  for (unsigned i = 0; i < axes.size(); ++i) {
    int64_t low = (*pads)[i], high = (*pads)[i + axes.size()];
    if (std::max(low, high) > kMaxDim || std::min(low, high) < -kMaxDim)
      return void(s.fail("pads has {0}", std::max(low, high) > kMaxDim ? std::max(low, high) : std::min(low, high)));
    before[axes[i]] = Dim(std::max<int64_t>(low, 0)), after[axes[i]] = Dim(std::max<int64_t>(high, 0));
    if (low >= 0 && high >= 0) continue;
    cuts = true; // negative ones cut
    start[axes[i]] = Dim(-std::min<int64_t>(low, 0));
    size[axes[i]] = size[axes[i]] + Dim(std::min<int64_t>(low, 0) + std::min<int64_t>(high, 0));
    if (!s.writer().demandAtLeast(size[axes[i]], 0)) return void(s.fail("pads cut more than dim {0} has", axes[i]));
  }
  if (cuts) x = x.slice(std::move(start), std::move(size));
  s.out(0, x.apply("pad", {{"before", before}, {"after", after}, {"value", value}}));
}

// --- depth and space

void depthToSpace(NodeSite &s) {
  Term x = s.in(0);
  int64_t b = s.integer("blocksize", 0);
  std::string mode = s.version() >= 11 ? s.text("mode", "DCR") : "DCR";
  if (b <= 0 || b > 4096 || x.rank() != 4) return void(s.fail("needs [N, C, H, W] and a blocksize above 0"));
  auto c = x.dim(1).divide(Dim(b * b));
  if (!c) return void(s.fail("channels {0} are no multiple of {1}", x.dim(1).str(), b * b));
  Dim n = x.dim(0), h = x.dim(2), w = x.dim(3);
  Term y = mode == "CRD" ? x.reshape({n, *c, Dim(b), Dim(b), h, w}).transpose({0, 1, 4, 2, 5, 3})
                         : x.reshape({n, Dim(b), Dim(b), *c, h, w}).transpose({0, 3, 4, 1, 5, 2});
  s.out(0, y.reshape({n, *c, h * Dim(b), w * Dim(b)}));
}
void spaceToDepth(NodeSite &s) {
  Term x = s.in(0);
  int64_t b = s.integer("blocksize", 0);
  if (b <= 0 || b > 4096 || x.rank() != 4) return void(s.fail("needs [N, C, H, W] and a blocksize above 0"));
  auto h = x.dim(2).divide(Dim(b)), w = x.dim(3).divide(Dim(b));
  if (!h || !w) return void(s.fail("{0} does not divide into blocks of {1}", x.typeText(), b));
  Dim n = x.dim(0), c = x.dim(1);
  if (auto error = s.writer().checkSize({c, Dim(b * b)})) return void(s.fail("{0}", llvm::toString(std::move(error))));
  s.out(0,
        x.reshape({n, c, *h, Dim(b), *w, Dim(b)}).transpose({0, 3, 5, 1, 2, 4}).reshape({n, c * Dim(b * b), *h, *w}));
}

// --- triangles

// Element (i, j) of the last two dims is kept where j - i >= k (upper) or <= k.
void trilu(NodeSite &s) {
  Term x = s.in(0);
  bool upper = s.integer("upper", 1) != 0;
  Term k = s.has(1) ? s.in(1).reshape({}).cast(DType::i64) : s.writer().constant(0, DType::i64);
  if (!x) return;
  if (x.rank() < 2) return void(s.fail("needs at least two dims, is given {0}", x.typeText()));
  Term i = s.writer().iota({x.dim(-2), Dim(1)}, 0), j = s.writer().iota({Dim(1), x.dim(-1)}, 1);
  s.out(0, select(upper ? j - i >= k : j - i <= k, x, s.writer().constant(0, x.dtype())));
}

// --- sizes

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

llvm::ArrayRef<OpEntry> movementOperators() {
  static const std::vector<OpEntry> entries = {
      {"", "Reshape", 1, reshape, 1},
      {"", "Flatten", 1, flatten, 1},
      {"", "Squeeze", 1, squeeze, 1},
      {"", "Unsqueeze", 1, unsqueeze, 1},
      {"", "Transpose", 1, transpose, 1},
      {"", "Expand", 8, expand, 1},
      {"", "Tile", 6, tile, 1},
      {"", "Concat", 1, concat, ~0u},
      {"", "Split", 2, split, 1},
      {"", "Slice", 1, slice, 1},
      {"", "Gather", 1, gather, 1},
      {"", "Pad", 1, pad},
      {"", "DepthToSpace", 1, depthToSpace},
      {"", "SpaceToDepth", 1, spaceToDepth},
      {"", "Trilu", 14, trilu},
      {"", "Shape", 1, shapeOf},
      {"", "Size", 1, sizeOf},
  };
  return entries;
}

} // namespace fusor::onnx
