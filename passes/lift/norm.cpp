// layer_norm and rms_norm: z / sqrt(mean(z z) + eps), which is a layer_norm where z is x - mean(x).
#include "ir/graph/names.h"
#include "ir/ops/op_def.h"
#include "passes/lift/family.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"

namespace fusor::passes {
namespace {

using ir::Op, ir::Value;

// v of sqrt(v); v of pow(v, 0.5).
Value underRoot(Value value, double exponent = 0.5) {
  if (Op *root = madeBy(value, exponent > 0 ? "sqrt" : "rsqrt")) return root->operand(0u);
  if (Op *pow = madeBy(value, "pow"))
    if (scalarOf(pow->operand(1)) == exponent) return pow->operand(0u);
  return {};
}

// v of 1 / sqrt(v).
Value underInverseRoot(Value value) {
  if (Value v = underRoot(value, -0.5)) return v;
  if (Op *inverse = madeBy(value, "reciprocal")) return underRoot(inverse->operand(0u));
  if (Op *div = madeBy(value, "div"))
    if (scalarOf(div->operand(0u)) == 1.0) return underRoot(div->operand(1));
  return {};
}

// y of y * y and pow(y, 2).
Value squared(Value value) {
  if (Op *mul = madeBy(value, "mul"); mul && mul->operand(0u) == mul->operand(1)) return mul->operand(0u);
  if (Op *pow = madeBy(value, "pow"))
    if (scalarOf(pow->operand(1)) == 2.0) return pow->operand(0u);
  return {};
}

/// z times the inverse root of `spread`.
struct Quotient {
  Value z, spread;
};

std::optional<Quotient> quotientOf(const Op &op) {
  if (op.is("div"))
    if (Value spread = underRoot(op.operand(1))) return Quotient{op.operand(0u), spread};
  if (op.is("mul"))
    for (unsigned i : {0u, 1u})
      if (Value spread = underInverseRoot(op.operand(i))) return Quotient{op.operand(1 - i), spread};
  return std::nullopt;
}

/// mean(y y) + eps.
struct Spread {
  Value y;
  Op *mean;
  std::optional<double> eps; // absent: what is added is no constant
  Value added = {};
};

std::optional<Spread> spreadOf(Value value) {
  auto meanOfSquare = [](Value v) { return madeBy(v, "mean") && squared(v.op()->operand(0u)) ? v.op() : nullptr; };
  if (Op *mean = meanOfSquare(value)) return Spread{squared(mean->operand(0u)), mean, 0.0};
  Op *add = madeBy(value, "add");
  for (unsigned i = 0; add && i < 2; ++i)
    if (Op *mean = meanOfSquare(add->operand(i)))
      return Spread{squared(mean->operand(0u)), mean, scalarOf(add->operand(1 - i)), add->operand(1 - i)};
  return std::nullopt;
}

// x of x - mean(x).
Value centred(Value z) {
  Op *sub = madeBy(z, "sub");
  Op *mean = sub ? madeBy(sub->operand(1), "mean") : nullptr;
  return mean && mean->operand(0u) == sub->operand(0u) && reducesLastDim(*mean) ? sub->operand(0u) : Value();
}

// The reader of `value` alone that applies `name` to it and a vector; `vector` is then that.
Value affineStep(Value value, llvm::StringRef name, Value &vector) {
  Op *op = onlyReader(value, name);
  if (!op) return value;
  Value other = op->operand(op->operand(0u) == value ? 1 : 0);
  if (!isVectorFor(other, value) || op->result().type() != value.type()) return value;
  vector = other;
  return op->result();
}

Value writeNorm(ir::Builder &b, bool layer, Value x, Value weight, Value bias, double eps, ir::DType out) {
  auto vector = [&](Value v) { return v ? asVector(b, beforeWidening(v)) : v; };
  ir::Attrs attrs{{"eps", eps}};
  if (out != x.dtype()) attrs.set("out", out);
  if (layer) return b.op("layer_norm", {x, vector(weight), vector(bias)}, attrs);
  return b.op("rms_norm", {x, vector(weight)}, attrs);
}

bool isAllOf(Value value, double number) {
  const ir::Persistent *p = storedConstant(value);
  const ir::Dim count = value.type().elements();
  if (!p || !count.isConstant()) return false;
  for (int64_t i = 0; i < count.value(); ++i)
    if (ir::loadElement(p->type.dtype, p->data->data(), i) != number) return false;
  return true;
}

// z / (sqrt(mean(z z)) + eps), which some models write: eps stands outside of the root.
Finding withEpsOutside(const Op &op) {
  Op *add = op.is("div") ? madeBy(op.operand(1), "add") : nullptr;
  for (unsigned i = 0; add && i < 2; ++i) {
    Value root = add->operand(i);
    auto spread = underRoot(root) ? spreadOf(underRoot(root)) : std::nullopt;
    if (!spread || spread->y != op.operand(0u)) continue;
    auto eps = scalarOf(add->operand(1 - i));
    return Finding::refused("{0} is added to the root %{1}, under the root is wanted",
                            eps ? llvm::formatv("{0}", llvm::format("%g", *eps)).str()
                                : ir::spelled('%', add->operand(1 - i).name()),
                            root.name());
  }
  return Finding::none();
}

Finding normOf(Op &op, const Quotient &quotient, const Spread &spread) {
  Value z = quotient.z, n = op.result();
  if (z != spread.y) return Finding::refused("%{0} is divided, the square is of %{1}", z.name(), spread.y.name());
  if (!spread.eps)
    return Finding::refused("{0} is added to the mean square, a scalar constant is wanted",
                            spread.added.name().empty()
                                ? spread.added.type().str()
                                : ir::spelled(spread.added.isPersistent() ? '@' : '%', spread.added.name()) + " : " +
                                      spread.added.type().str());
  if (!(*spread.eps >= 0 && *spread.eps <= 1e30)) return Finding::refused("eps is {0}", *spread.eps);
  if (!reducesLastDim(*spread.mean)) return Finding::refused("the mean square is not over the last dim, kept as 1");
  if (!isWide(z)) return Finding::refused("small ops in {0} round in between", ir::name(z.dtype()));
  if (n.type() != z.type()) return Finding::refused("%{0} is no {1}", n.name(), z.type().str());

  Value x = centred(z), weight, bias, last = affineStep(n, "mul", weight);
  const bool layer = static_cast<bool>(x);
  if (layer) last = affineStep(last, "add", bias);
  x = beforeWidening(layer ? x : z);
  if (Op *cast = onlyReader(last, "cast"))
    if (cast->result().dtype() == ir::DType::bf16 || cast->result().dtype() == ir::DType::f16) last = cast->result();
  return Finding::found(
      last,
      [=, eps = *spread.eps, out = last.dtype()](ir::Builder &b) {
        return writeNorm(b, layer, x, weight, bias, eps, out);
      },
      layer ? "layer_norm" : "rms_norm");
}

} // namespace

Finding findNorm(Op &op) {
  auto centredOrAll = [](Value z) { return centred(z) ? centred(z) : z; };
  auto quotient = quotientOf(op);
  auto spread = quotient ? spreadOf(quotient->spread) : std::nullopt;
  if (spread) return normOf(op, *quotient, *spread).worth(op.result(), {centredOrAll(quotient->z)});
  Finding outside = withEpsOutside(op);
  return outside.refusal.empty() ? outside : std::move(outside).worth(op.result(), {centredOrAll(op.operand(0u))});
}

Finding findNormWeight(Op &op) {
  if (!op.is("mul")) return Finding::none();
  for (unsigned i : {0u, 1u}) {
    Value y = op.operand(i), vector = op.operand(1 - i);
    Op *norm = madeBy(y, "rms_norm");
    if (!norm || !isVectorFor(vector, y) || op.result().type() != y.type()) continue;
    Value weight = norm->operand(1), x = norm->operand(0u);
    if (weight && !isAllOf(weight, 1)) return Finding::none(); // two weights, as some models have it
    if (!isWide(y))
      return Finding::refused("%{0} is rounded to {1} before", y.name(), ir::name(y.dtype())).worth(op.result(), {x});
    if (!y.hasOneUse() || !norm->result(1).unused())
      return Finding::refused("%{0} is read {1} times, by the product with the weight alone is wanted", y.name(),
                              y.users().size())
          .worth(op.result(), {x});
    return Finding::found(op.result(),
                          [=, out = y.dtype()](ir::Builder &b) {
                            return writeNorm(b, false, x, vector, {}, norm->attr<double>("eps"), out);
                          })
        .worth(op.result(), {x});
  }
  return Finding::none();
}

} // namespace fusor::passes
