#include "codegen/emit/count.h"
#include "llvm/Support/FormatVariadic.h"

namespace fusor::codegen {

using ir::Dim;

Count Count::ceilDiv(Dim dim, int64_t by) {
  Count count(1);
  count.multiply({std::move(dim), by});
  return count;
}

void Count::multiply(Factor factor) {
  if (factor.dim.isConstant()) factor = {Dim((factor.dim.value() + factor.by - 1) / factor.by), 1};
  for (Factor &own : factors_)
    if (own.by == 1 && factor.by == 1) {
      own.dim = own.dim * factor.dim;
      return;
    }
  if (factor.by == 1)
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
  Count result = *this;
  result.limit_ = limit;
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
    product *= (*value + factor.by - 1) / factor.by;
  }
  return std::min(product, limit_);
}

std::string Count::str() const {
  std::string text;
  for (const Factor &factor : factors_) {
    if (factor.by == 1 && factor.dim.is(1) && factors_.size() > 1) continue;
    if (!text.empty()) text += " * ";
    if (factor.by != 1)
      text += llvm::formatv("ceil({0} / {1})", factor.dim.str(), factor.by);
    else
      text += factor.dim.str();
  }
  if (limit_ != INT64_MAX) text += llvm::formatv(", at most {0}", limit_);
  return text;
}

std::string Count::text(llvm::function_ref<std::string(const Dim &)> dim) const {
  std::string text;
  for (const Factor &factor : factors_) {
    if (factor.by == 1 && factor.dim.is(1) && factors_.size() > 1) continue;
    if (!text.empty()) text += " * ";
    if (factor.by != 1)
      text += llvm::formatv("(({0} + {1}) / {2})", dim(factor.dim), factor.by - 1, factor.by);
    else
      text += dim(factor.dim);
  }
  return text;
}

} // namespace fusor::codegen
