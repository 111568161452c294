// Arithmetic read as a polynomial, so that 0.5 * (x * (1 + t)), (x * 0.5) * (t + 1) and x / 2 + x * t / 2 are one form.
#pragma once
#include "ir/graph/graph.h"
#include <array>
#include <optional>

namespace fusor::passes {

/// Coefficients of x^i t^j, i <= 3 and j <= 1.
struct Polynomial {
  std::array<std::array<double, 2>, 4> c{};
  double operator()(unsigned x, unsigned t = 0) const { return c[x][t]; }
  /// The coefficients that are not 0 are those of `other`.
  bool sameTerms(const Polynomial &other) const;
  /// All coefficients are, but for a few roundings in `dtype`.
  bool isNear(const Polynomial &other, ir::DType dtype) const;
  /// "0.5 x + 0.5 x t".
  std::string str() const;
};

/// `value` in terms of x and t (which may be null); absent where it is no such polynomial.
std::optional<Polynomial> polynomialOf(ir::Value value, ir::Value x, ir::Value t);

/// The values that `value` may be a polynomial in, nearest first: what add, mul, pow ... lead to.
llvm::SmallVector<ir::Value, 8> possibleVariables(ir::Value value);
/// The values that arithmetic makes of `value`, nearest first.
llvm::SmallVector<ir::Value, 8> madeOf(ir::Value value);

} // namespace fusor::passes
