// Arithmetic, comparison, logic, choice: mostly one op of the table each, which broadcasts as ONNX does.
#include "frontend/onnx/ops/common.h"

namespace fusor::onnx {

using ir::DType;

void direct(NodeSite &s, llvm::StringRef op, ir::Attrs attrs) {
  s.ignore("consumed_inputs");
  s.out(0, s.in(0).apply(op, std::move(attrs)));
}

namespace {

// Results of narrow integers wrap; the IR saturates them.
bool wraps(DType dtype) {
  return dtype == DType::i8 || dtype == DType::i16 || dtype == DType::u8 || dtype == DType::u16 || dtype == DType::u32;
}
Term arithmetic(llvm::StringRef op, Term a, Term b) {
  if (!a || !b) return {};
  if (!wraps(a.dtype()) || a.dtype() != b.dtype()) return a.writer().op(op, {a, b});
  return wrapped(a.writer().op(op, {a.cast(DType::i64), b.cast(DType::i64)}), a.dtype());
}

// Before version 7 operands broadcast by attributes of their own.
void checkOldBroadcast(NodeSite &s) {
  s.ignore("consumed_inputs");
  if (s.version() < 7 && s.integer("broadcast", 0) != 0)
    s.fail("broadcasting by attributes (before opset 7) is not supported");
}

void add(NodeSite &s) { checkOldBroadcast(s), s.out(0, arithmetic("add", s.in(0), s.in(1))); }
void sub(NodeSite &s) { checkOldBroadcast(s), s.out(0, arithmetic("sub", s.in(0), s.in(1))); }
void mul(NodeSite &s) { checkOldBroadcast(s), s.out(0, arithmetic("mul", s.in(0), s.in(1))); }
void div(NodeSite &s) { checkOldBroadcast(s), s.out(0, s.in(0) / s.in(1)); }

void power(NodeSite &s) {
  checkOldBroadcast(s);
  Term base = s.in(0), exponent = s.in(1);
  if (base.isFloat()) return s.out(0, s.writer().op("pow", {base, castTo(exponent, base.dtype())}));
  Term y = s.writer().op("pow", {base.cast(DType::f64), exponent.cast(DType::f64)});
  s.out(0, castTo(y, base.dtype()));
}

void mod(NodeSite &s) {
  Term a = s.in(0), b = s.in(1);
  bool signOfDividend = s.integer("fmod", 0) != 0;
  Term r = s.writer().op("mod", {a, b});
  if (signOfDividend || !r) return s.out(0, r);
  Term other = (r < 0.0) == (b < 0.0); // one sign
  s.out(0, select(other, r, select(r == 0.0, r, r + b)));
}

// All inputs, one after the other.
void chained(NodeSite &s, llvm::StringRef op) {
  s.ignore("consumed_inputs");
  Term y = s.in(0);
  for (unsigned i = 1; i < s.inputCount(); ++i) y = arithmetic(op, y, s.in(i));
  s.out(0, y);
}
void smallest(NodeSite &s) { chained(s, "min"); }
void largest(NodeSite &s) { chained(s, "max"); }
void sum(NodeSite &s) { chained(s, "add"); }
void average(NodeSite &s) {
  Term y = s.in(0);
  for (unsigned i = 1; i < s.inputCount(); ++i) y = y + s.in(i);
  s.out(0, y / static_cast<double>(std::max(1u, s.inputCount())));
}

void absolute(NodeSite &s) { direct(s, "abs"); }
void negated(NodeSite &s) { direct(s, "neg"); }
void exponential(NodeSite &s) { direct(s, "exp"); }
void logarithm(NodeSite &s) { direct(s, "log"); }
void squareRoot(NodeSite &s) { direct(s, "sqrt"); }
void reciprocal(NodeSite &s) { direct(s, "reciprocal"); }
void errorFunction(NodeSite &s) { direct(s, "erf"); }
void floored(NodeSite &s) { direct(s, "floor"); }
void ceiled(NodeSite &s) { direct(s, "ceil"); }
void rounded(NodeSite &s) { direct(s, "round"); }
void sign(NodeSite &s) { direct(s, "sign"); }
void sine(NodeSite &s) { direct(s, "sin"); }
void cosine(NodeSite &s) { direct(s, "cos"); }
void tangent(NodeSite &s) { direct(s, "tan"); }
void arcSine(NodeSite &s) { direct(s, "asin"); }
void arcCosine(NodeSite &s) { direct(s, "acos"); }
void arcTangent(NodeSite &s) { direct(s, "atan"); }
void sinh(NodeSite &s) { direct(s, "sinh"); }
void cosh(NodeSite &s) { direct(s, "cosh"); }
void asinh(NodeSite &s) { direct(s, "asinh"); }
void acosh(NodeSite &s) { direct(s, "acosh"); }
void atanh(NodeSite &s) { direct(s, "atanh"); }
void negation(NodeSite &s) { direct(s, "not"); }
void isNan(NodeSite &s) { direct(s, "isnan"); }

void isInfinite(NodeSite &s) {
  Term x = s.in(0), y = x.apply("isinf");
  if (!s.integer("detect_negative", 1)) y = both(y, x > 0.0);
  if (!s.integer("detect_positive", 1)) y = both(y, x < 0.0);
  s.out(0, y);
}

void compare(NodeSite &s, llvm::StringRef op) { checkOldBroadcast(s), s.out(0, s.writer().op(op, {s.in(0), s.in(1)})); }
void equal(NodeSite &s) { compare(s, "eq"); }
void less(NodeSite &s) { compare(s, "lt"); }
void lessOrEqual(NodeSite &s) { compare(s, "le"); }
void greater(NodeSite &s) { compare(s, "gt"); }
void greaterOrEqual(NodeSite &s) { compare(s, "ge"); }
void bothOf(NodeSite &s) { compare(s, "and"); }
void either(NodeSite &s) { compare(s, "or"); }
void exclusive(NodeSite &s) { compare(s, "ne"); }

void where(NodeSite &s) { s.out(0, select(s.in(0), s.in(1), s.in(2))); }

// Limits by attributes before version 11, then by inputs that may be left out.
void clip(NodeSite &s) {
  s.ignore("consumed_inputs");
  Term x = s.in(0);
  Term low = s.optionalIn(1), high = s.optionalIn(2);
  if (s.version() < 11) {
    low = s.hasAttr("min") && x ? s.writer().constant(s.real("min", 0), x.dtype()) : Term();
    high = s.hasAttr("max") && x ? s.writer().constant(s.real("max", 0), x.dtype()) : Term();
  }
  if (low) x = s.writer().op("max", {x, low});
  if (high) x = s.writer().op("min", {x, high});
  s.out(0, x);
}

} // namespace

llvm::ArrayRef<OpEntry> elementwiseOperators() {
  static const std::vector<OpEntry> entries = {
      {"", "Add", 1, add, 0, foldAdd},
      {"", "Sub", 1, sub, 0, foldSub},
      {"", "Mul", 1, mul, 0, foldMul},
      {"", "Div", 1, div, 0, foldDiv},
      {"", "Pow", 1, power},
      {"", "Mod", 10, mod},
      {"", "Min", 1, smallest, 0, foldMin},
      {"", "Max", 1, largest, 0, foldMax},
      {"", "Sum", 1, sum},
      {"", "Mean", 1, average},
      {"", "Abs", 1, absolute},
      {"", "Neg", 1, negated, 0, foldNeg},
      {"", "Exp", 1, exponential},
      {"", "Log", 1, logarithm},
      {"", "Sqrt", 1, squareRoot},
      {"", "Reciprocal", 1, reciprocal},
      {"", "Erf", 9, errorFunction},
      {"", "Floor", 1, floored},
      {"", "Ceil", 1, ceiled},
      {"", "Round", 11, rounded},
      {"", "Sign", 9, sign},
      {"", "Sin", 7, sine},
      {"", "Cos", 7, cosine},
      {"", "Tan", 7, tangent},
      {"", "Asin", 7, arcSine},
      {"", "Acos", 7, arcCosine},
      {"", "Atan", 7, arcTangent},
      {"", "Sinh", 9, sinh},
      {"", "Cosh", 9, cosh},
      {"", "Asinh", 9, asinh},
      {"", "Acosh", 9, acosh},
      {"", "Atanh", 9, atanh},
      {"", "Not", 1, negation},
      {"", "IsNaN", 9, isNan},
      {"", "IsInf", 10, isInfinite},
      {"", "Equal", 1, equal, 0, foldEqual, true},
      {"", "Less", 1, less, 0, foldLess, true},
      {"", "LessOrEqual", 12, lessOrEqual},
      {"", "Greater", 1, greater, 0, foldGreater, true},
      {"", "GreaterOrEqual", 12, greaterOrEqual},
      {"", "And", 1, bothOf},
      {"", "Or", 1, either},
      {"", "Xor", 1, exclusive},
      {"", "Where", 9, where, 0, foldWhere},
      {"", "Clip", 1, clip},
  };
  return entries;
}

} // namespace fusor::onnx
