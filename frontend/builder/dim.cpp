#include "frontend/builder/graph_state.h"

namespace fusor {
using frontend::Access;
using frontend::DimState;

Dim::Dim(int64_t value) : state_(std::make_shared<DimState>(DimState{ir::Dim(value), {}})) {}

namespace {
Dim combine(const Dim &a, const Dim &b, ir::Dim result) {
  DimState state{std::move(result), Access::state(a).symbols};
  llvm::append_range(state.symbols, Access::state(b).symbols);
  return Access::wrap(std::move(state));
}
} // namespace

Dim Dim::operator+(const Dim &o) const { return combine(*this, o, state_->dim + o.state_->dim); }
Dim Dim::operator-(const Dim &o) const { return combine(*this, o, state_->dim - o.state_->dim); }
Dim Dim::operator*(const Dim &o) const { return combine(*this, o, state_->dim * o.state_->dim); }
bool Dim::operator==(const Dim &o) const { return state_->dim == o.state_->dim; }
bool Dim::isNumber() const { return state_->dim.isConstant(); }
int64_t Dim::number() const { return isNumber() ? state_->dim.value() : 0; }
std::string Dim::str() const { return state_->dim.str(); }

Dim dim(const std::string &symbol, int64_t low, int64_t high) {
  return Access::wrap({ir::Dim::symbol(symbol), {{symbol, ir::SymbolRange{low, high}}}});
}
Dim dim(const std::string &symbol) { return Access::wrap({ir::Dim::symbol(symbol), {{symbol, std::nullopt}}}); }

Dim frontend::Access::wrap(DimState state) {
  Dim d;
  d.state_ = std::make_shared<const DimState>(std::move(state));
  return d;
}

} // namespace fusor
