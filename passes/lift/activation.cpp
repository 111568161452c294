// gelu and silu: what is made of t = erf(..), tanh(..) or sigmoid(..) of x, and of x again.
#include "ir/ops/op_def.h"
#include "passes/lift/family.h"
#include "passes/lift/polynomial.h"
#include <cmath>

namespace fusor::passes {
namespace {

using ir::Op, ir::Value;

const double kErfScale = std::sqrt(0.5), kTanhScale = 2 / std::sqrt(std::acos(-1.0)) * std::sqrt(0.5),
             kCubic = 0.044715, kQuick = 1.702;

Polynomial geluArgument(bool erf) {
  Polynomial p;
  p.c[1][0] = erf ? kErfScale : kTanhScale;
  if (!erf) p.c[3][0] = kTanhScale * kCubic;
  return p;
}

Polynomial ofXAndXT(double x, double xt) {
  Polynomial p;
  p.c[1][0] = x, p.c[1][1] = xt;
  return p;
}

/// What is made of t and x with the terms that are wanted; exact where the coefficients are too.
struct Outer {
  Value value;
  Polynomial polynomial;
  bool exact;
};

std::optional<Outer> outerOf(Value t, Value x, const Polynomial &wanted) {
  std::optional<Outer> nearest; // of those with other coefficients: what was meant
  for (Value value : madeOf(t)) {
    auto p = polynomialOf(value, x, t);
    if (!p || !p->sameTerms(wanted) || value.type() != x.type()) continue;
    if (p->isNear(wanted, x.dtype())) return Outer{value, *p, true};
    auto distance = [&](const Polynomial &q) { return std::abs(q(1, 1) - wanted(1, 1)); };
    if (!nearest || distance(*p) < distance(nearest->polynomial)) nearest = Outer{value, *p, false};
  }
  return nearest;
}

} // namespace

Finding findGelu(Op &op) {
  const bool erf = op.is("erf");
  if (!erf && !op.is("tanh")) return Finding::none();
  const Polynomial wanted = ofXAndXT(0.5, 0.5), argument = geluArgument(erf);
  Finding finding;
  for (Value x : possibleVariables(op.operand(0u))) {
    auto inner = polynomialOf(op.operand(0u), x, {});
    auto outer = inner ? outerOf(op.result(), x, wanted) : std::nullopt;
    if (!outer) continue;
    const bool fits = inner->isNear(argument, x.dtype());
    if (fits && outer->exact && isWide(x)) {
      std::string form = erf ? "erf" : "tanh";
      return Finding::found(outer->value,
                            [=](ir::Builder &b) {
                              return b.op("gelu", {x}, {{"form", form}});
                            })
          .worth(outer->value, {x});
    }
    if (fits && outer->exact)
      finding = Finding::refused("small ops in {0} round in between", ir::name(x.dtype()));
    else if (fits)
      finding = Finding::refused("%{0} is {1} with t = {2}, 0.5 x + 0.5 x t is wanted", outer->value.name(),
                                 outer->polynomial.str(), op.name());
    else if (outer->exact)
      finding = Finding::refused("{0} of {1}, of {2} is wanted", op.name(), inner->str(), argument.str());
    finding = std::move(finding).worth(outer->value, {x});
  }
  return finding.refusal.empty() ? Finding::none() : finding;
}

Finding findSilu(Op &op) {
  if (!op.is("sigmoid")) return Finding::none();
  auto find = [](Value argument, Value t) {
    Finding finding;
    for (Value x : possibleVariables(argument)) {
      auto inner = polynomialOf(argument, x, {});
      auto outer = inner ? outerOf(t, x, ofXAndXT(0, 1)) : std::nullopt;
      if (!outer || !outer->exact) continue;
      if (!isWide(x))
        finding = Finding::refused("small ops in {0} round in between", ir::name(x.dtype()));
      else if (inner->isNear(ofXAndXT(1, 0), x.dtype()))
        return Finding::found(outer->value, [=](ir::Builder &b) { return b.op("silu", {x}); }).worth(outer->value, {x});
      else if (inner->isNear(ofXAndXT(kQuick, 0), x.dtype()))
        return Finding::found(
                   outer->value,
                   [=](ir::Builder &b) {
                     return b.op("gelu", {x}, {{"form", std::string("quick")}});
                   },
                   "quick gelu")
            .worth(outer->value, {x});
      else
        finding = Finding::refused("sigmoid of {0}, of x or {1} is wanted", inner->str(), ofXAndXT(kQuick, 0).str());
      finding = std::move(finding).worth(outer->value, {x});
    }
    return finding;
  };
  Finding finding = find(op.operand(0u), op.result());
  if (finding.write) return finding;
  // mul(x, reshape(sigmoid(reshape x)))
  Op *before = madeBy(op.operand(0u), "reshape"), *after = onlyReader(op.result(), "reshape");
  if (before && after && before->operand(0u).type() == after->result().type()) {
    if (Finding through = find(before->operand(0u), after->result()); through.write) return through;
  }
  return finding;
}

} // namespace fusor::passes
