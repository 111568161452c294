#include "ir/types/dim.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cassert>

namespace fusor::ir {

Dim::Dim(int64_t value) {
  if (value != 0) terms_.push_back({{}, value});
}

Dim Dim::symbol(llvm::StringRef name) {
  Dim dim;
  dim.terms_.push_back({{name.str()}, 1});
  return dim;
}

int64_t Dim::value() const {
  assert(isConstant() && "value() of a symbolic dim");
  return terms_.empty() ? 0 : terms_[0].coefficient;
}

std::optional<llvm::StringRef> Dim::asSymbol() const {
  if (terms_.size() == 1 && terms_[0].coefficient == 1 && terms_[0].symbols.size() == 1)
    return llvm::StringRef(terms_[0].symbols[0]);
  return std::nullopt;
}

// Longer products first, then by name, the constant last: B*T+S+1.
void Dim::add(const Term &term) {
  auto before = [](const Term &a, const Term &b) {
    if (a.symbols.size() != b.symbols.size()) return a.symbols.size() > b.symbols.size();
    return std::lexicographical_compare(a.symbols.begin(), a.symbols.end(), b.symbols.begin(), b.symbols.end());
  };
  auto it = std::lower_bound(terms_.begin(), terms_.end(), term, before);
  if (it != terms_.end() && it->symbols == term.symbols) {
    it->coefficient += term.coefficient;
    if (it->coefficient == 0) terms_.erase(it);
  } else if (term.coefficient != 0) {
    terms_.insert(it, term);
  }
}

Dim Dim::operator+(const Dim &other) const {
  Dim sum = *this;
  for (const Term &term : other.terms_) sum.add(term);
  return sum;
}

Dim Dim::operator-(const Dim &other) const { return *this + other * Dim(-1); }

Dim Dim::operator*(const Dim &other) const {
  Dim result;
  for (const Term &a : terms_)
    for (const Term &b : other.terms_) {
      Term term;
      term.coefficient = a.coefficient * b.coefficient;
      term.symbols = a.symbols;
      term.symbols.append(b.symbols.begin(), b.symbols.end());
      llvm::sort(term.symbols);
      result.add(term);
    }
  return result;
}

std::optional<Dim> Dim::divide(const Dim &other) const {
  if (other.terms_.size() != 1) return *this == other && !terms_.empty() ? std::optional<Dim>(Dim(1)) : std::nullopt;
  const Term &divisor = other.terms_[0];
  Dim result;
  for (const Term &term : terms_) {
    if (term.coefficient % divisor.coefficient) return std::nullopt;
    Term quotient;
    quotient.coefficient = term.coefficient / divisor.coefficient;
    quotient.symbols = term.symbols;
    for (const std::string &symbol : divisor.symbols) {
      auto it = llvm::find(quotient.symbols, symbol);
      if (it == quotient.symbols.end()) return std::nullopt;
      quotient.symbols.erase(it);
    }
    result.add(quotient);
  }
  return result;
}

// No tensor is as large. Four symbols of an ONNX model at the middle of their ranges are 2^60 together, and sums of
// such sizes must stay within 64 bits.
static constexpr int64_t kLargestValue = int64_t(1) << 48;

static int64_t bounded(int64_t value) { return std::clamp(value, -kLargestValue, kLargestValue); }
static int64_t boundedProduct(int64_t a, int64_t b) {
  int64_t product = 0;
  if (!llvm::MulOverflow(a, b, product)) return bounded(product);
  return (a < 0) == (b < 0) ? kLargestValue : -kLargestValue;
}

std::optional<int64_t> Dim::evaluate(const SymbolValues &symbols) const {
  if (isConstant()) return value();
  int64_t total = 0;
  for (const Term &term : terms_) {
    int64_t value = term.coefficient;
    for (const std::string &symbol : term.symbols) {
      auto it = symbols.find(symbol);
      if (it == symbols.end()) return std::nullopt;
      value = boundedProduct(value, it->second);
    }
    total = bounded(total + bounded(value));
  }
  return total;
}

void Dim::forEachSymbol(llvm::function_ref<void(llvm::StringRef)> use) const {
  for (const Term &term : terms_)
    for (const std::string &symbol : term.symbols) use(symbol);
}

std::string Dim::str() const {
  if (terms_.empty()) return "0";
  std::string text;
  for (const Term &term : terms_) {
    if (!text.empty() && term.coefficient > 0) text += "+";
    if (term.symbols.empty() || (term.coefficient != 1 && term.coefficient != -1))
      text += std::to_string(term.coefficient) + (term.symbols.empty() ? "" : "*");
    else if (term.coefficient == -1)
      text += "-";
    text += llvm::join(term.symbols, "*");
  }
  return text;
}

Dim product(llvm::ArrayRef<Dim> dims) {
  Dim result(1);
  for (const Dim &dim : dims) result = result * dim;
  return result;
}

std::string str(llvm::ArrayRef<Dim> dims) {
  return llvm::join(llvm::map_range(dims, [](const Dim &dim) { return dim.str(); }), ", ");
}

} // namespace fusor::ir
