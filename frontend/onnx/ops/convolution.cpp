// Convolution and pooling: the elements under each place of the window are gathered into a row, and rows are multiplied
// by the weights or reduced. Spatial sizes are numbers; the batch may be a symbol.
#include "frontend/onnx/limits.h"
#include "frontend/onnx/ops/common.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

namespace fusor::onnx {

using ir::Dim, ir::DType, ir::Shape;

namespace {

struct Window { // of one spatial dim
  int64_t in = 0, kernel = 1, stride = 1, dilation = 1, before = 0, after = 0, out = 0;
  int64_t span() const { return (kernel - 1) * dilation + 1; }
};

// Sizes from attributes; `kernel` from the weights of a convolution. Absent after a failure.
std::optional<std::vector<Window>> windowsOf(NodeSite &s, Term x, std::vector<int64_t> kernel) {
  std::vector<int64_t> given = s.list("kernel_shape"), strides = s.list("strides"), dilations = s.list("dilations"),
                       pads = s.list("pads");
  std::string automatic = s.text("auto_pad", "NOTSET");
  bool roundsUp = s.integer("ceil_mode", 0) != 0;
  if (s.failed()) return std::nullopt;
  auto refused = [&](const char *what) { return s.fail("{0}: {1}", what, x.typeText()), std::nullopt; };
  if (x.rank() < 3) return refused("needs [N, C, D1, ...]");
  unsigned n = x.rank() - 2;
  if (!given.empty() && !kernel.empty() && given != kernel) return refused("kernel_shape is not that of the weights");
  if (kernel.empty()) kernel = given;
  auto fits = [](const std::vector<int64_t> &list, size_t count, int64_t low) {
    return list.size() == count && llvm::all_of(list, [low](int64_t v) { return v >= low && v <= kMaxDim; });
  };
  if (strides.empty()) strides.assign(n, 1);
  if (dilations.empty()) dilations.assign(n, 1);
  if (pads.empty() || automatic != "NOTSET") pads.assign(2 * n, 0);
  if (!fits(kernel, n, 1) || !fits(strides, n, 1) || !fits(dilations, n, 1) || !fits(pads, 2 * n, 0))
    return refused("kernel_shape, strides, dilations and pads do not fit the input");
  std::vector<Window> windows(n);
  for (unsigned i = 0; i < n; ++i) {
    Window &w = windows[i];
    if (!x.dim(i + 2).isConstant()) return refused("its spatial sizes must be numbers");
    w = {x.dim(i + 2).value(), kernel[i], strides[i], dilations[i], pads[i], pads[i + n], 0};
    if (w.kernel > kMaxDim / w.dilation) return refused("the window is too large");
    if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
      w.out = (w.in + w.stride - 1) / w.stride;
      int64_t all = std::max<int64_t>(0, (w.out - 1) * w.stride + w.span() - w.in);
      w.before = automatic == "SAME_UPPER" ? all / 2 : all - all / 2, w.after = all - w.before;
      continue;
    }
    if (automatic != "NOTSET" && automatic != "VALID") return refused("attribute 'auto_pad' has no such value");
    int64_t room = w.in + w.before + w.after - w.span();
    if (room < 0) return refused("the window is larger than the padded input");
    w.out = room / w.stride + 1;
    if (roundsUp && room % w.stride != 0 && w.out * w.stride < w.in + w.before) ++w.out; // it starts in the input
  }
  return windows;
}

// [N, C, D1, ...] -> [N, C, O1, K1, O2, K2, ...]: what the window reads at each place, `fill` outside of the input.
Term gathered(NodeSite &s, Term x, llvm::ArrayRef<Window> windows, double fill) {
  Writer &w = s.writer();
  Shape before(x.rank(), Dim(0)), after = before;
  for (unsigned i = 0; i < windows.size(); ++i) {
    const Window &at = windows[i];
    int64_t end = (at.out - 1) * at.stride + at.span();
    before[i + 2] = Dim(at.before), after[i + 2] = Dim(std::max<int64_t>(0, end - at.in - at.before));
  }
  if (llvm::any_of(before, [](const Dim &d) { return !d.is(0); }) ||
      llvm::any_of(after, [](const Dim &d) { return !d.is(0); }))
    x = x.apply("pad", {{"before", before}, {"after", after}, {"value", fill}});
  for (unsigned i = 0; i < windows.size(); ++i) {
    const Window &at = windows[i];
    Term places = w.iota({Dim(at.out), Dim(1)}, 0) * static_cast<double>(at.stride) +
                  w.iota({Dim(1), Dim(at.kernel)}, 1) * static_cast<double>(at.dilation);
    x = w.op("gather", {x, places}, {{"axis", static_cast<int64_t>(2 + 2 * i)}});
  }
  return x;
}

// Dims of a gathered tensor that are places (offset 0) or window elements (offset 1).
std::vector<int64_t> everySecond(unsigned spatial, unsigned offset, unsigned first = 2) {
  std::vector<int64_t> dims;
  for (unsigned i = 0; i < spatial; ++i) dims.push_back(first + 2 * i + offset);
  return dims;
}

// rows [G, N*O, C/G*K] x weights [G, M/G, C/G*K]'
void conv(NodeSite &s) {
  Term x = s.in(0), weights = s.in(1), bias = s.optionalIn(2);
  int64_t groups = s.integer("group", 1);
  if (s.hasAttr("ceil_mode")) return void(s.fail("attribute 'ceil_mode' is of pooling only"));
  std::vector<int64_t> kernel;
  for (unsigned i = 2; i < weights.rank(); ++i) {
    if (!weights.dim(i).isConstant()) return void(s.fail("the sizes of the weights must be numbers"));
    kernel.push_back(weights.dim(i).value());
  }
  auto windows = windowsOf(s, x, kernel);
  if (!windows) return;
  if (weights.rank() != x.rank() || !x.dim(1).isConstant() || !weights.dim(0).isConstant() || groups <= 0 ||
      x.dim(1).value() % groups || weights.dim(0).value() % groups || !weights.dim(1).is(x.dim(1).value() / groups) ||
      weights.dtype() != x.dtype() || !x.isFloat())
    return void(s.fail("input {0} and weights {1} do not fit in {2} groups", x.typeText(), weights.typeText(), groups));
  unsigned n = windows->size();
  int64_t each = x.dim(1).value() / groups, filters = weights.dim(0).value();
  Dim batch = x.dim(0), places(1), reads(each);
  Shape apart{batch, Dim(groups), Dim(each)}, result{Dim(filters), batch};
  for (const Window &w : *windows) {
    apart.append({Dim(w.out), Dim(w.kernel)});
    result.push_back(Dim(w.out));
    places = places * Dim(w.out), reads = reads * Dim(w.kernel);
  }
  std::vector<int64_t> order{1, 0};
  llvm::append_range(order, everySecond(n, 0, 3));
  order.push_back(2);
  llvm::append_range(order, everySecond(n, 1, 3));
  Term rows = gathered(s, x, *windows, 0).reshape(apart).transpose(order).reshape({Dim(groups), batch * places, reads});
  Term y = s.writer().op("matmul", {weights.reshape({Dim(groups), Dim(filters / groups), reads}), rows},
                         {{"trans_b", true}});
  std::vector<int64_t> back{1, 0};
  for (unsigned i = 0; i < n; ++i) back.push_back(i + 2);
  y = y.reshape(result).transpose(back);
  if (bias) {
    Shape shape(x.rank(), Dim(1));
    shape[1] = Dim(filters);
    y = y + bias.reshape(shape);
  }
  s.out(0, y);
}

void maxPool(NodeSite &s) {
  Term x = s.in(0);
  s.ignore("storage_order"); // of the second result
  if (s.wants(1)) s.fail("the second result, where the largest were, is not supported");
  auto windows = windowsOf(s, x, {});
  if (!windows) return;
  double least = x.isFloat() ? -std::numeric_limits<double>::infinity() : x.dtype() == DType::i8 ? -128 : 0;
  if (!x.isFloat() && x.dtype() != DType::i8 && x.dtype() != DType::u8)
    return void(s.fail("{0} is not supported", x.typeText()));
  s.out(0, gathered(s, x, *windows, least).reduce("reduce_max", everySecond(windows->size(), 1), false));
}

void averagePool(NodeSite &s) {
  Term x = s.in(0);
  bool countsPads = s.integer("count_include_pad", 0) != 0;
  auto windows = windowsOf(s, x, {});
  if (!windows) return;
  if (!x.isFloat()) return void(s.fail("{0} is not supported", x.typeText()));
  auto dims = everySecond(windows->size(), 1);
  Term y = gathered(s, x.cast(wide(x.dtype())), *windows, 0).reduce("sum", dims, false);
  // How many elements each place sees: those of the input, or of the padded input.
  Shape ones(x.rank(), Dim(1));
  std::vector<Window> counting = *windows;
  for (unsigned i = 0; i < counting.size(); ++i) {
    Window &w = counting[i];
    if (countsPads) w.in += w.before + w.after, w.before = w.after = 0;
    ones[i + 2] = Dim(w.in);
  }
  Term count = gathered(s, s.writer().constant(1, y.dtype()).broadcast(ones), counting, 0).reduce("sum", dims, false);
  s.out(0, (y / count).cast(x.dtype()));
}

void globalPool(NodeSite &s, const char *reduction) {
  Term x = s.in(0);
  if (x.rank() < 3) return void(s.fail("needs [N, C, D1, ...], is given {0}", x.typeText()));
  std::vector<int64_t> dims = allDims(x.rank());
  dims.erase(dims.begin(), dims.begin() + 2);
  s.out(0, x.reduce(reduction, dims));
}
void globalAveragePool(NodeSite &s) { globalPool(s, "mean"); }
void globalMaxPool(NodeSite &s) { globalPool(s, "reduce_max"); }

} // namespace

llvm::ArrayRef<OpEntry> convolutionOperators() {
  static const std::vector<OpEntry> entries = {
      {"", "Conv", 1, conv},
      {"", "MaxPool", 1, maxPool},
      {"", "AveragePool", 7, averagePool},
      {"", "GlobalAveragePool", 1, globalAveragePool},
      {"", "GlobalMaxPool", 1, globalMaxPool},
  };
  return entries;
}

} // namespace fusor::onnx
