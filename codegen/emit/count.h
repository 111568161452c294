// A number that is known when the symbols are: a product of ceil(dim / by), each perhaps with a limit. Launch grids and
// workspace sizes.
//
//   Count(B * 256)                                            256*B
//   Count::ceilDiv(B * 256, 32) * Count(768 * 4)              ceil(256*B / 32) * 3072
//   Count::ceilDiv(B * 256, 8).atMost(512) * Count(768)       min(ceil(256*B / 8), 512) * 768
#pragma once
#include "ir/types/dim.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace fusor::codegen {

class Count {
public:
  Count(ir::Dim dim) { multiply({std::move(dim), 1}); }
  Count(int64_t value) : Count(ir::Dim(value)) {}
  Count(int value) : Count(ir::Dim(value)) {}
  Count(unsigned value) : Count(ir::Dim(value)) {}
  static Count ceilDiv(ir::Dim dim, int64_t by);
  Count operator*(const Count &other) const;
  /// The smaller of this, which has one factor, and `limit`.
  Count atMost(int64_t limit) const;

  /// Absent when a symbol has no value.
  std::optional<int64_t> evaluate(const ir::SymbolValues &symbols) const;
  /// "min(ceil(256*B / 32), 512) * 3072"
  std::string str() const;
  /// As a C expression; `dim` spells a Dim as an operand that binds tighter than `*`.
  std::string text(llvm::function_ref<std::string(const ir::Dim &)> dim) const;
  bool isConstant() const;

private:
  struct Factor {
    ir::Dim dim;
    int64_t by = 1, limit = INT64_MAX;
    bool isPlain() const { return by == 1 && limit == INT64_MAX; }
    int64_t at(int64_t value) const { return std::min((value + by - 1) / by, limit); }
  };
  void multiply(Factor factor); // constants are folded into the first factor
  llvm::SmallVector<Factor, 3> factors_;
};

} // namespace fusor::codegen
