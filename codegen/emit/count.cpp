#include "codegen/emit/count.h"
#include "ir/graph/bug.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/FormatVariadic.h"

namespace fusor::codegen {

using ir::Dim;

Count Count::ceilDiv(Dim dim, int64_t by) {
  Count count(1);
  count.multiply({std::move(dim), by});
  return count;
}

void Count::multiply(Factor factor) {
  if (factor.dim.isConstant()) factor = {Dim(factor.at(factor.dim.value()))};
  for (Factor &own : factors_)
    if (own.isPlain() && factor.isPlain()) {
      own.dim = own.dim * factor.dim;
      return;
    }
  if (factor.isPlain())
    factors_.push_back(std::move(factor));
  else
    factors_.insert(factors_.begin(), std::move(factor));
}

Count Count::operator*(const Count &other) const {
  Count result = *this;
  for (const Factor &factor : other.factors_) result.multiply(factor);
  return result;
}

Count Count::atMost(int64_t limit) const {
  Factor only = factors_.front();
  for (const Factor &factor : llvm::ArrayRef<Factor>(factors_).drop_front())
    if (!factor.isPlain() || !factor.dim.is(1)) FUSOR_BUG("a limit on a product, {0}", str());
  only.limit = std::min(only.limit, limit);
  Count result(1);
  result.multiply(std::move(only));
  return result;
}

bool Count::isConstant() const {
  for (const Factor &factor : factors_)
    if (!factor.dim.isConstant()) return false;
  return true;
}

std::optional<int64_t> Count::evaluate(const ir::SymbolValues &symbols) const {
  int64_t product = 1;
  for (const Factor &factor : factors_) {
    auto value = factor.dim.evaluate(symbols);
    if (!value) return std::nullopt;
    product *= factor.at(*value);
  }
  return product;
}

std::string Count::str() const {
  std::string text;
  for (const Factor &factor : factors_) {
    if (factor.isPlain() && factor.dim.is(1) && factors_.size() > 1) continue;
    std::string one = factor.by == 1 ? factor.dim.str() : llvm::formatv("ceil({0} / {1})", factor.dim.str(), factor.by);
    if (factor.limit != INT64_MAX) one = llvm::formatv("min({0}, {1})", one, factor.limit);
    text += (text.empty() ? "" : " * ") + one;
  }
  return text;
}

std::string Count::text(llvm::function_ref<std::string(const Dim &)> dim) const {
  std::string text;
  for (const Factor &factor : factors_) {
    if (factor.isPlain() && factor.dim.is(1) && factors_.size() > 1) continue;
    std::string one = factor.by == 1
                          ? dim(factor.dim)
                          : llvm::formatv("(({0} + {1}) / {2})", dim(factor.dim), factor.by - 1, factor.by).str();
    if (factor.limit != INT64_MAX) one = llvm::formatv("({0} < {1} ? {0} : {1})", one, factor.limit);
    text += (text.empty() ? "" : " * ") + one;
  }
  return text;
}

} // namespace fusor::codegen
