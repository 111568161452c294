#include "passes/lift/polynomial.h"
#include "passes/lift/family.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace fusor::passes {
namespace {

using ir::Op, ir::Value;

constexpr llvm::StringLiteral kArithmetic[] = {"add", "sub", "mul", "div", "neg", "pow"};
constexpr unsigned kMostValues = 16, kMostDepth = 12; // the longest spelling of a GELU has 9 ops

Polynomial scaled(Polynomial p, double factor) {
  for (auto &row : p.c)
    for (double &c : row) c *= factor;
  return p;
}

Polynomial sum(const Polynomial &a, const Polynomial &b) {
  Polynomial p = a;
  for (unsigned i = 0; i < 4; ++i)
    for (unsigned j = 0; j < 2; ++j) p.c[i][j] += b.c[i][j];
  return p;
}

std::optional<Polynomial> product(const Polynomial &a, const Polynomial &b) {
  Polynomial p;
  for (unsigned i = 0; i < 8; ++i)
    for (unsigned k = 0; k < 8; ++k) {
      double c = a(i / 2, i % 2) * b(k / 2, k % 2);
      if (c == 0) continue;
      if (i / 2 + k / 2 > 3 || i % 2 + k % 2 > 1) return std::nullopt;
      p.c[i / 2 + k / 2][i % 2 + k % 2] += c;
    }
  return p;
}

std::optional<Polynomial> read(Value value, Value x, Value t, unsigned depth) {
  Polynomial p;
  if (value == x || (t && value == t)) return p.c[value == x][value != x] = 1, p;
  if (auto number = scalarOf(value)) return p.c[0][0] = *number, p;
  Op *op = value.op();
  if (!op || depth == 0 || !llvm::is_contained(kArithmetic, op->name())) return std::nullopt;
  auto a = read(op->operand(0u), x, t, depth - 1);
  if (!a) return std::nullopt;
  if (op->is("neg")) return scaled(*a, -1);
  if (op->is("div") || op->is("pow")) {
    auto number = scalarOf(op->operand(1));
    if (!number) return std::nullopt;
    if (op->is("div")) return scaled(*a, 1 / *number);
    if (*number != 2 && *number != 3) return std::nullopt;
    auto square = product(*a, *a);
    return square && *number == 3 ? product(*square, *a) : square;
  }
  auto b = read(op->operand(1), x, t, depth - 1);
  if (!b) return std::nullopt;
  if (op->is("mul")) return product(*a, *b);
  return sum(*a, op->is("sub") ? scaled(*b, -1) : *b);
}

} // namespace

bool Polynomial::sameTerms(const Polynomial &other) const {
  for (unsigned i = 0; i < 8; ++i)
    if (((*this)(i / 2, i % 2) != 0) != (other(i / 2, i % 2) != 0)) return false;
  return true;
}

bool Polynomial::isNear(const Polynomial &other, ir::DType dtype) const {
  for (unsigned i = 0; i < 8; ++i)
    if (!passes::isNear((*this)(i / 2, i % 2), other(i / 2, i % 2), dtype)) return false;
  return true;
}

std::string Polynomial::str() const {
  static constexpr const char *powers[] = {"", " x", " x^2", " x^3"};
  llvm::SmallVector<std::string, 4> terms;
  for (unsigned i = 0; i < 8; ++i)
    if (double c = (*this)(i / 2, i % 2))
      terms.push_back(llvm::formatv("{0:f7}{1}{2}", c, powers[i / 2], i % 2 ? " t" : "").str());
  return terms.empty() ? "0" : llvm::join(terms, " + ");
}

std::optional<Polynomial> polynomialOf(Value value, Value x, Value t) { return read(value, x, t, kMostDepth); }

llvm::SmallVector<Value, 8> possibleVariables(Value value) {
  llvm::SmallVector<Value, 8> values{value};
  for (unsigned i = 0; i < values.size() && values.size() < kMostValues; ++i)
    if (Op *op = values[i].op(); op && llvm::is_contained(kArithmetic, op->name()))
      for (Value operand : op->operands())
        if (!llvm::is_contained(values, operand) && !scalarOf(operand)) values.push_back(operand);
  return values;
}

llvm::SmallVector<Value, 8> madeOf(Value value) {
  llvm::SmallVector<Value, 8> values{value};
  for (unsigned i = 0; i < values.size() && values.size() < kMostValues; ++i)
    for (Op *user : values[i].users())
      if (llvm::is_contained(kArithmetic, user->name()) && !llvm::is_contained(values, user->result()))
        values.push_back(user->result());
  values.erase(values.begin());
  return values;
}

} // namespace fusor::passes
