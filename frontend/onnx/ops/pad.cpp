// Elements around a tensor.
#include "frontend/onnx/limits.h"
#include "frontend/onnx/ops/common.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::onnx {

using ir::Dim, ir::DType, ir::Shape;

namespace {

// Which element of a dim of `n` stands `low` in front of it, in it, and `high` behind it, by a mode other than
// constant.
Term sources(Writer &w, llvm::StringRef mode, const Dim &n, int64_t low, int64_t high) {
  Term place = w.iota({n + Dim(low + high)}, 0) - static_cast<double>(low), zero = w.constant(0, DType::i64);
  Term size = w.extent(n, DType::i64), last = size - 1.0;
  if (mode == "edge") return w.op("min", {w.op("max", {place, zero}), last});
  Term period = mode == "wrap" ? size : last * 2.0;
  Term at = w.op("mod", {place, period});
  at = select(at < 0.0, at + period, at);
  return mode == "wrap" ? at : w.op("min", {at, period - at}); // there and back
}

// reflect: the elements before the first in turn, without it; edge: the first; wrap: the last ones.
Term mirrored(NodeSite &s, Term x, llvm::StringRef mode, llvm::ArrayRef<int64_t> axes, llvm::ArrayRef<int64_t> pads) {
  if (mode != "reflect" && mode != "edge" && mode != "wrap")
    return s.fail("attribute 'mode' = '{0}' is not supported", mode);
  for (unsigned i = 0; i < axes.size(); ++i) {
    int64_t low = pads[i], high = pads[i + axes.size()];
    if (low < 0 || high < 0) return s.fail("pads that cut are supported in mode constant only");
    if (low == 0 && high == 0) continue;
    auto axis = static_cast<unsigned>(axes[i]);
    const int64_t needed = mode == "reflect" ? 2 : 1;
    if (!s.writer().demandAtLeast(x.dim(axis), needed))
      return s.fail("mode {0} needs {1} elements along axis {2} of {3}", mode, needed, axis, x.typeText());
    x = s.writer().op("gather", {x, sources(s.writer(), mode, x.dim(axis), low, high)}, {{"axis", axes[i]}});
  }
  return x;
}

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
  if (pads->size() != 2 * axes.size())
    return void(s.fail("pads has {0} entries for {1} dims", pads->size(), axes.size()));
  for (int64_t by : *pads)
    if (by > kMaxDim || by < -kMaxDim) return void(s.fail("pads has {0}", by));
  if (mode != "constant") return s.out(0, mirrored(s, x, mode, axes, *pads));
  Shape before(x.rank(), Dim(0)), after = before, start = before, size = x.shape();
  bool cuts = false;
  for (unsigned i = 0; i < axes.size(); ++i) {
    int64_t low = (*pads)[i], high = (*pads)[i + axes.size()];
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

} // namespace

llvm::ArrayRef<OpEntry> padOperators() {
  static const std::vector<OpEntry> entries = {
      {"", "Pad", 1, pad},
  };
  return entries;
}

} // namespace fusor::onnx
