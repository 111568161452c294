// Resize and Upsample: each element of a result is a sum of a few of x along each axis, whose places and weights are
// computed at import. Axes that are resized have sizes that are numbers; others may be symbols.
#include "frontend/onnx/limits.h"
#include "frontend/onnx/ops/common.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>

namespace fusor::onnx {

using ir::Dim, ir::DType, ir::Shape;

namespace {

struct Form {
  std::string mode, place, nearest; // place: how a place in the result becomes one in x
  double cubic = -0.75;
  bool excludesOutside = false;
};

/// One axis: from `in` to `out` elements; scale is what was asked for, which out / in need not be.
struct Along {
  int64_t in = 1, out = 1;
  double scale = 1;
};

// Where element `i` of the result is in x, computed in `Real`.
template <typename Real> double placeOf(const Form &f, const Along &a, int64_t i) {
  const auto x = static_cast<Real>(i), in = static_cast<Real>(a.in), out = static_cast<Real>(a.out),
             scale = static_cast<Real>(a.scale), half = static_cast<Real>(0.5);
  const Real halfPixel = (x + half) / scale - half;
  if (f.place == "asymmetric") return x / scale;
  if (f.place == "align_corners") return a.out == 1 ? 0 : x * (in - 1) / (out - 1);
  if (f.place == "pytorch_half_pixel") return a.out > 1 ? halfPixel : 0;
  if (f.place == "half_pixel_symmetric") return in / 2 * (1 - out / (scale * in)) + halfPixel;
  return halfPixel;
}

double nearestTo(const Form &f, double place) {
  if (f.nearest == "floor") return std::floor(place);
  if (f.nearest == "ceil") return std::ceil(place);
  return f.nearest == "round_prefer_ceil" ? std::floor(place + 0.5) : std::ceil(place - 0.5);
}

/// Elements of x from `first` on, which may be outside of it, and their weights.
struct Taps {
  int64_t first = 0;
  llvm::SmallVector<double, 4> weights;
};

Taps tapsOf(const Form &f, const Along &a, int64_t i) {
  const double place = placeOf<double>(f, a, i);
  if (f.mode == "nearest") return {static_cast<int64_t>(nearestTo(f, place)), {1}};
  const double from = std::floor(place), r = place - from;
  if (f.mode == "linear") return {static_cast<int64_t>(from), {1 - r, r}};
  // The cubic through four neighbours; `near` of those at a distance below 1, `far` of the others.
  auto near = [&](double d) { return ((f.cubic + 2) * d - (f.cubic + 3)) * d * d + 1; };
  auto far = [&](double d) { return ((f.cubic * d - 5 * f.cubic) * d + 8 * f.cubic) * d - 4 * f.cubic; };
  return {static_cast<int64_t>(from) - 1, {far(1 + r), near(r), near(1 - r), far(2 - r)}};
}

// Of those outside nothing, and of the others as much more.
void excludeOutside(Taps &taps, int64_t n) {
  double sum = 0;
  for (size_t t = 0; t < taps.weights.size(); ++t) {
    const int64_t at = taps.first + static_cast<int64_t>(t);
    if (at < 0 || at >= n) taps.weights[t] = 0;
    sum += taps.weights[t];
  }
  for (double &weight : taps.weights) weight /= sum;
}

Term constantOf(Writer &w, DType dtype, llvm::SmallVector<int64_t, 4> shape, llvm::ArrayRef<double> values) {
  std::vector<char> bytes(values.size() * ir::byteSize(dtype));
  for (size_t i = 0; i < values.size(); ++i) ir::storeElement(dtype, bytes.data(), static_cast<int64_t>(i), values[i]);
  return w.data({dtype, std::move(shape), std::make_shared<const std::vector<char>>(std::move(bytes))}, "resize");
}

Term resized(NodeSite &s, Term x, unsigned axis, const Along &a, const Form &f) {
  if (!x) return {};
  if (a.out > kFoldingElements) return s.fail("to {0} elements along axis {1} is not supported", a.out, axis);
  std::vector<Taps> taps;
  for (int64_t i = 0; i < a.out; ++i) {
    // Between two elements by a scale that is not exact: evaluators of ONNX compute places in f32 or in double.
    if (f.mode == "nearest" && nearestTo(f, placeOf<float>(f, a, i)) != nearestTo(f, placeOf<double>(f, a, i)))
      return s.fail("element {0} along axis {1} is between two of x, by a scale of {2}: give sizes", i, axis, a.scale);
    taps.push_back(tapsOf(f, a, i));
    if (f.excludesOutside) excludeOutside(taps.back(), a.in);
  }
  llvm::SmallVector<int64_t, 4> along(x.rank(), 1);
  along[axis] = a.out;
  Term sum;
  const size_t count = f.mode == "nearest" ? 1 : f.mode == "linear" ? 2 : 4;
  for (size_t t = 0; t < count; ++t) {
    std::vector<double> places, weights;
    for (const Taps &at : taps) {
      auto place = static_cast<double>(at.first + static_cast<int64_t>(t));
      places.push_back(std::clamp(place, 0.0, static_cast<double>(a.in - 1)));
      weights.push_back(at.weights[t]);
    }
    Term part = s.writer().op("gather", {x, constantOf(s.writer(), DType::i64, {a.out}, places)},
                              {{"axis", static_cast<int64_t>(axis)}});
    if (count > 1) part = part * constantOf(s.writer(), x.dtype(), along, weights);
    sum = sum ? sum + part : part;
  }
  return sum;
}

// --- sizes

std::optional<Along> alongByScale(NodeSite &s, const Dim &n, double scale) {
  const double out = n.isConstant() ? std::floor(static_cast<double>(n.value()) * scale) : -1;
  if (!(scale > 0) || out < 0 || out > static_cast<double>(kMaxDim))
    return s.fail("a dim of {0} by {1} is not supported", n.str(), scale), std::nullopt;
  // 10 by 0.7f: the product is 7 in f32 and less in double, and evaluators of ONNX do either.
  if (std::floor(static_cast<float>(n.value()) * static_cast<float>(scale)) != out)
    return s.fail("a dim of {0} by {1} has {2} elements or one more; give sizes", n.str(), scale,
                  static_cast<int64_t>(out)),
           std::nullopt;
  return Along{n.value(), static_cast<int64_t>(out), scale};
}

/// For each dim of x; absent where it stays as it is.
using Axes = std::vector<std::optional<Along>>;

std::optional<Axes> byScales(NodeSite &s, const Shape &x, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<double> scales) {
  Axes axes(x.size());
  for (unsigned i = 0; i < dims.size(); ++i) {
    if (scales[i] == 1) continue;
    auto along = alongByScale(s, x[dims[i]], scales[i]);
    if (!along) return std::nullopt;
    axes[dims[i]] = *along;
  }
  return axes;
}

std::optional<Axes> bySizes(NodeSite &s, const Shape &x, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<Dim> sizes,
                            llvm::StringRef policy) {
  const bool stretches = policy == "stretch", isLarger = policy == "not_smaller";
  if (!stretches && !isLarger && policy != "not_larger")
    return s.fail("attribute 'keep_aspect_ratio_policy' = '{0}' is not supported", policy), std::nullopt;
  Axes axes(x.size());
  std::optional<double> common; // of all axes, where the ratio is kept
  for (unsigned i = 0; i < dims.size(); ++i) {
    const Dim &from = x[dims[i]], &to = sizes[i];
    if (stretches && from == to) continue;
    if (!from.isConstant() || !to.isConstant() || from.is(0) || to.value() < 0 || to.value() > kMaxDim)
      return s.fail("a dim of {0} to {1} is not supported", from.str(), to.str()), std::nullopt;
    const double scale = static_cast<double>(to.value()) / static_cast<double>(from.value());
    axes[dims[i]] = Along{from.value(), to.value(), scale};
    common = !common ? scale : isLarger ? std::max(*common, scale) : std::min(*common, scale);
  }
  for (auto &along : axes) {
    if (stretches || !along) continue;
    const double out = std::floor(*common * static_cast<double>(along->in) + 0.5);
    if (out > static_cast<double>(kMaxDim)) return s.fail("to {0} elements is not supported", out), std::nullopt;
    along->scale = *common, along->out = static_cast<int64_t>(out);
  }
  return axes;
}

void resizeTo(NodeSite &s, Term x, const Axes &axes, const Form &f) {
  const bool isOneOf = llvm::StringSwitch<bool>(f.place)
                           .Cases("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", true)
                           .Cases("align_corners", "asymmetric", true)
                           .Default(false);
  if (!isOneOf) return void(s.fail("attribute 'coordinate_transformation_mode' = '{0}' is not supported", f.place));
  if (f.mode != "nearest" && f.mode != "linear" && f.mode != "cubic")
    return void(s.fail("attribute 'mode' = '{0}' is not supported", f.mode));
  const bool isRound = f.nearest == "round_prefer_floor" || f.nearest == "round_prefer_ceil";
  if (!isRound && f.nearest != "floor" && f.nearest != "ceil")
    return void(s.fail("attribute 'nearest_mode' = '{0}' is not supported", f.nearest));
  if (f.mode != "nearest" && !x.isFloat())
    return void(s.fail("mode {0} of {1} is not supported", f.mode, x.typeText()));
  Term y = f.mode == "nearest" ? x : x.cast(wide(x.dtype()));
  for (unsigned i = 0; i < axes.size(); ++i) {
    if (!axes[i]) continue;
    if (axes[i]->in == 0) return void(s.fail("dim {0} of {1} has no elements", i, x.typeText()));
    // Where the scale makes no whole size, evaluators of ONNX align the corners of that size or of the whole one.
    const auto out = static_cast<double>(axes[i]->out), exact = axes[i]->scale * static_cast<double>(axes[i]->in);
    if (f.place == "align_corners" && std::abs(exact - out) > 1e-5 * out)
      return void(
          s.fail("align_corners of {0} elements by {1} is not supported: give sizes", axes[i]->in, axes[i]->scale));
    y = resized(s, y, i, *axes[i], f);
  }
  s.out(0, y.cast(x.dtype()));
}

void resize(NodeSite &s) {
  Term x = s.in(0);
  const bool isFirst = s.version() < 11; // x, scales; with one way to find places
  Form f{s.text("mode", "nearest"), isFirst ? "asymmetric" : s.text("coordinate_transformation_mode", "half_pixel"),
         isFirst ? "floor" : s.text("nearest_mode", "round_prefer_floor")};
  std::string policy = "stretch";
  std::vector<int64_t> dims = allDims(x.rank());
  if (!isFirst) {
    f.cubic = s.real("cubic_coeff_a", -0.75), f.excludesOutside = s.flag("exclude_outside", false);
    s.ignore("extrapolation_value"), s.has(1); // of tf_crop_and_resize
  }
  if (s.version() >= 18) {
    if (s.flag("antialias", false)) s.fail("attribute 'antialias' is not supported");
    policy = s.text("keep_aspect_ratio_policy", "stretch");
    if (s.hasAttr("axes")) dims = s.axes(s.list("axes"), x.rank());
  }
  if (f.excludesOutside && f.mode != "cubic") s.fail("attribute 'exclude_outside' is for mode cubic");
  if (s.failed()) return;
  const unsigned scalesInput = isFirst ? 1 : 2;
  const bool hasSizes = !isFirst && s.has(3) && s.type(3).elements() != Dim(0),
             hasScales = s.has(scalesInput) && s.type(scalesInput).elements() != Dim(0);
  if (hasSizes == hasScales) return void(s.fail("needs scales or sizes, one of them"));
  std::optional<Axes> axes;
  if (hasSizes) {
    auto sizes = s.dims(3, "sizes");
    if (sizes && sizes->size() != dims.size()) s.fail("sizes are {0}, for {1} dims", sizes->size(), dims.size());
    if (!s.failed()) axes = bySizes(s, x.shape(), dims, *sizes, policy);
  } else {
    auto scales = s.reals(scalesInput, "scales");
    if (scales && scales->size() != dims.size()) s.fail("scales are {0}, for {1} dims", scales->size(), dims.size());
    if (!s.failed()) axes = byScales(s, x.shape(), dims, *scales);
  }
  if (axes) resizeTo(s, x, *axes, f);
}

void upsample(NodeSite &s) {
  Term x = s.in(0);
  Form f{s.text("mode", "nearest"), "asymmetric", "floor"};
  auto scales = s.version() >= 9 ? s.reals(1, "scales") : s.realList("scales");
  if (s.failed() || !scales) return;
  if (scales->size() != x.rank()) return void(s.fail("scales are {0}, for {1}", scales->size(), x.typeText()));
  if (auto axes = byScales(s, x.shape(), allDims(x.rank()), *scales)) resizeTo(s, x, *axes, f);
}

} // namespace

llvm::ArrayRef<OpEntry> resizeOperators() {
  static const std::vector<OpEntry> entries = {
      {"", "Upsample", 7, upsample},
      {"", "Resize", 10, resize},
  };
  return entries;
}

} // namespace fusor::onnx
