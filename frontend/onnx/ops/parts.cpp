// Parts of a tensor and their joining. On known tensors of sizes all of these are done at import.
#include "frontend/onnx/limits.h"
#include "frontend/onnx/ops/common.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::onnx {

using ir::Dim, ir::DType, ir::Shape;

namespace {

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

} // namespace

llvm::ArrayRef<OpEntry> partsOperators() {
  static const std::vector<OpEntry> entries = {
      {"", "Concat", 1, concat, ~0u},
      {"", "Split", 2, split, 1},
      {"", "Slice", 1, slice, 1},
  };
  return entries;
}

} // namespace fusor::onnx
