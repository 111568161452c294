// Elements around a tensor.
#include "frontend/onnx/limits.h"
#include "frontend/onnx/ops/common.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::onnx {

using ir::Dim, ir::DType, ir::Shape;

namespace {

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

} // namespace

llvm::ArrayRef<OpEntry> padOperators() {
  static const std::vector<OpEntry> entries = {
      {"", "Pad", 1, pad},
  };
  return entries;
}

} // namespace fusor::onnx
