// Dims, shapes, types and symbol ranges: `256*B`, `[B, 256]`, `bf16[B, 256] per tensor`, `B in 1..64`.
//
// A dim is checked while it is read: no hostile text overflows the arithmetic on it. Coefficients are bounded, and
// symbols that may be above 2^16 with them, so later arithmetic on shapes (products, sums of a few) stays within 64
// bits; what a shape is at some sizes is bounded where it is evaluated.
#pragma once
#include "frontend/text/cursor.h"
#include "ir/graph/graph.h"

namespace fusor::frontend {

/// No tensor without symbols has more elements than this (2^48).
inline constexpr double kMostElements = 281474976710656.0;
/// Of a type with symbols: those up to 2^16 as 1, larger ones at their largest value.
inline constexpr double kMostInRange = 288230376151711744.0;
/// No tensor has more dims.
inline constexpr unsigned kMostDims = 16;

class TypeParser {
public:
  TypeParser(Cursor &cursor, ir::Module &module) : cursor_(cursor), module_(module) {}

  // Each returns nothing after having reported an error.
  std::optional<ir::Dim> dim();
  std::optional<ir::Shape> shape();
  std::optional<ir::TensorType> type();
  std::optional<ir::DType> dtype();
  /// "B in 1..64": declares the symbol.
  bool symbolRange();
  /// An integer with an optional sign.
  std::optional<int64_t> integer(llvm::StringRef what);
  /// A number with an optional sign, inf or nan.
  std::optional<double> real(llvm::StringRef what);

  /// Whether a type has more elements than these limits.
  bool isTooLarge(const ir::TensorType &type) const;

private:
  struct Factor {
    ir::Dim dim;
    double magnitude; // an upper bound of |dim|
  };
  std::optional<Factor> factor();
  std::optional<Factor> term();

  Cursor &cursor_;
  ir::Module &module_;
};

} // namespace fusor::frontend
