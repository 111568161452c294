// A dimension: a number, a symbol, or a polynomial of symbols.
//
// Problem: a module is written for `B` sequences of `T` tokens and must stay exact when a pass flattens [B, T, 768] to
// [B*T, 768] or a cache of S tokens grows to S+1. So a Dim is a polynomial with integer coefficients in a canonical
// order: two Dims are equal exactly when they are equal for every value of their symbols.
//   Dim(256)            256              Dim::symbol("B") * 256      256*B            Dim::symbol("S") + 1     S+1
// Limit: division is exact or absent (`divide`), there is no floor division.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace fusor::ir {

/// Values of symbols at run time: {"B": 8}.
using SymbolValues = llvm::StringMap<int64_t>;

class Dim {
public:
  Dim(int64_t value = 0);
  static Dim symbol(llvm::StringRef name);

  bool isConstant() const { return terms_.empty() || (terms_.size() == 1 && terms_[0].symbols.empty()); }
  /// Only for constants.
  int64_t value() const;
  bool is(int64_t v) const { return isConstant() && value() == v; }
  /// The symbol's name when this is exactly one symbol.
  std::optional<llvm::StringRef> asSymbol() const;

  Dim operator+(const Dim &other) const;
  Dim operator-(const Dim &other) const;
  Dim operator*(const Dim &other) const;
  /// this / other where the quotient is a polynomial, e.g. 256*B / B.
  std::optional<Dim> divide(const Dim &other) const;
  bool operator==(const Dim &other) const { return terms_ == other.terms_; }
  bool operator!=(const Dim &other) const { return !(*this == other); }

  /// The value under `symbols`; absent when a symbol is missing.
  std::optional<int64_t> evaluate(const SymbolValues &symbols) const;
  /// Calls `use` with each symbol's name.
  void forEachSymbol(llvm::function_ref<void(llvm::StringRef)> use) const;
  /// "256*B", "S+1", "768".
  std::string str() const;

private:
  struct Term {
    llvm::SmallVector<std::string, 1> symbols; // sorted; empty for the constant term
    int64_t coefficient = 0;
    bool operator==(const Term &o) const { return coefficient == o.coefficient && symbols == o.symbols; }
  };
  void add(const Term &term);
  llvm::SmallVector<Term, 1> terms_; // sorted by symbols, the constant last; no zero coefficients
};

using Shape = llvm::SmallVector<Dim, 4>;

/// The product of all dims; 1 for a scalar.
Dim product(llvm::ArrayRef<Dim> dims);
/// "B, 256, 768"
std::string str(llvm::ArrayRef<Dim> dims);

} // namespace fusor::ir
