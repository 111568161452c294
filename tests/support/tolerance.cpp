#include "tests/support/tolerance.h"
#include <cmath>

namespace fusor::tests {

using namespace ir;

namespace {

// Half an ulp, relative to the value.
double unitRoundoff(DType dtype) {
  switch (dtype) {
  case DType::f64: return 0x1p-53;
  case DType::f32: return 0x1p-24;
  case DType::f16: return 0x1p-11;
  case DType::bf16: return 0x1p-8;
  case DType::f8e4m3: return 0x1p-4;
  case DType::f8e5m2: return 0x1p-3;
  default: return 0;
  }
}

// The smallest step near 0.
double smallestStep(DType dtype) {
  switch (dtype) {
  case DType::f16: return 0x1p-24;
  case DType::f8e4m3: return 0x1p-9;
  case DType::f8e5m2: return 0x1p-16;
  default: return 0;
  }
}

} // namespace

Tolerance toleranceFor(DType dtype, int64_t terms, double magnitude) {
  if (!isFloat(dtype)) return {};
  double compute = unitRoundoff(dtype == DType::f64 ? DType::f64 : DType::f32);
  double result = dtype == DType::f64 || dtype == DType::f32 ? 0 : 2 * unitRoundoff(dtype);
  // A handful of roundings an element, and for sums a random walk with a wide margin.
  double sum = compute * (16 + 4 * std::sqrt(static_cast<double>(terms)));
  return {result + sum, sum * magnitude + smallestStep(dtype)};
}

testing::AssertionResult closeTo(const RefTensor &got, const RefTensor &want, Tolerance tolerance) {
  if (got.dtype != want.dtype)
    return testing::AssertionFailure() << "dtype " << name(got.dtype).str() << ", expected " << name(want.dtype).str();
  if (got.shape != want.shape) return testing::AssertionFailure() << "the shape differs";
  if (got.data.size() != want.data.size()) return testing::AssertionFailure() << "the number of elements differs";
  int64_t worst = -1, bad = 0;
  double excess = 0;
  for (int64_t i = 0; i < want.elements(); ++i) {
    double g = got.data[i], w = want.data[i];
    if (g == w || (std::isnan(g) && std::isnan(w))) continue;
    double allowed = tolerance.absolute + tolerance.relative * std::fabs(w), over = std::fabs(g - w) - allowed;
    if (over <= 0) continue;
    ++bad;
    if (worst < 0 || !(over <= excess)) worst = i, excess = over;
  }
  if (!bad) return testing::AssertionSuccess();
  return testing::AssertionFailure() << bad << " of " << want.elements() << " elements differ; the worst is element "
                                     << worst << ": " << got.data[worst] << ", expected " << want.data[worst]
                                     << " (allowed: " << tolerance.relative << " relative, " << tolerance.absolute
                                     << " absolute)";
}

} // namespace fusor::tests
