// How close a result must be to the float64 reference: from its dtype, the length of the sums behind it and the
// magnitude of what was summed. One place, so that no test invents its own epsilon.
#pragma once
#include "ir/ops/op_def.h"
#include "gtest/gtest.h"

namespace fusor::tests {

struct Tolerance {
  double relative = 0, absolute = 0;
};

/// For values of `dtype` computed in its compute type (f32 below f64), each from a sum of `terms` products or terms of
/// magnitude `magnitude`. Rounding to a narrow dtype may go either way at a tie: one ulp is allowed.
Tolerance toleranceFor(ir::DType dtype, int64_t terms = 1, double magnitude = 1);

/// Every element of `got` against `want`: NaN equals NaN, infinities must be equal. The message names the worst
/// element.
testing::AssertionResult closeTo(const ir::RefTensor &got, const ir::RefTensor &want, Tolerance tolerance);

/// The same shape and dtype and every element equal (NaN equals NaN, -0 equals 0).
inline testing::AssertionResult equalTo(const ir::RefTensor &got, const ir::RefTensor &want) {
  return closeTo(got, want, {});
}

} // namespace fusor::tests
