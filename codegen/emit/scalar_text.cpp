#include "codegen/emit/scalar_text.h"
#include "codegen/emit/literal.h"
#include "ir/graph/bug.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringSwitch.h"

namespace fusor::codegen {

using namespace ir;

llvm::StringRef storageType(DType type) {
  if (type == DType::f32) return "float";
  if (type == DType::f64) return "double";
  return name(type);
}

llvm::StringRef unsaturatedType(DType type) { return type == DType::f8e4m3 ? "f8e4m3_nan" : "f8e5m2_inf"; }

llvm::StringRef variableType(DType type) {
  if (type == DType::f64) return "double";
  if (isFloat(type)) return "float";
  return type == DType::i1 ? "bool" : name(type);
}

llvm::StringRef accumulatorType(DType type) { return type == DType::f64 || isInteger(type) ? "double" : "float"; }
unsigned accumulatorBytes(DType type) { return accumulatorType(type) == "double" ? 8 : 4; }

llvm::StringRef reducer(const Op &op) { return op.is("sum") ? "Sum" : op.is("reduce_max") ? "Max" : "Min"; }

std::string constantText(double value, DType type) {
  double rounded = roundTo(type, value);
  if (type == DType::i1) return rounded != 0 ? "true" : "false";
  if (isInteger(type)) return ("(" + name(type) + ")" + integerLiteral(static_cast<int64_t>(rounded))).str();
  return type == DType::f64 ? doubleLiteral(rounded) : floatLiteral(rounded);
}

std::string castText(llvm::StringRef text, DType from, DType to) {
  if (from == to) return text.str();
  if (isNarrowFloat(to)) return llvm::formatv("roundTo<{0}>({1})", storageType(to), text);
  if (to == DType::i1) return llvm::formatv("convert<bool>({0})", text);
  if (to == DType::f32 && variableType(from) == "float") return text.str();
  bool narrows = isInteger(from) && isInteger(to) && (byteSize(from) > byteSize(to) || isSigned(from) != isSigned(to));
  if (narrows) return llvm::formatv("convert<{0}>((double){1})", storageType(to), text); // saturates
  return llvm::formatv("convert<{0}>({1})", storageType(to), text);
}

std::string fromAccumulator(llvm::StringRef text, DType type) {
  return castText(text, accumulatorType(type) == "double" ? DType::f64 : DType::f32, type);
}

namespace {

enum class Form : uint8_t { number, boolean };
// How tightly an expression binds, loosest first.
enum Precedence : uint8_t { kChoice, kOr, kAnd, kEquality, kRelation, kSum, kProduct, kUnary, kAtom };

struct Text {
  std::string text;
  Form form = Form::number;
  Precedence binds = kAtom;
};

std::string bracketed(const Text &t, Precedence atLeast) { return t.binds >= atLeast ? t.text : "(" + t.text + ")"; }

class FormulaWriter {
public:
  FormulaWriter(const Op &op, llvm::ArrayRef<ScalarOperand> operands, CodeWriter &w, NamePool &names)
      : operands_(operands), w_(w), names_(names), base_(op.name().str()) {
    for (unsigned i = 0; i < operands.size(); ++i)
      if (!llvm::is_contained(op.def().untypedOperands, i))
        isDouble_ |= operands[i].dtype == DType::f64 || isInteger(operands[i].dtype);
    isInteger_ = isDouble_ && comparesIntegers(op, operands);
    if (isInteger_) isDouble_ = false;
  }

  Text write(const Expr &expr) {
    countUses(expr);
    markExact(expr, false);
    return visit(expr);
  }
  Text toNumber(Text t) const {
    if (t.form == Form::number) return t;
    return {bracketed(t, kOr) + " ? " + literal(1) + " : " + literal(0), Form::number, kChoice};
  }
  Text toBoolean(Text t) const {
    if (t.form == Form::boolean) return t;
    return {bracketed(t, kRelation) + " != " + literal(0), Form::boolean, kEquality};
  }
  bool isDouble() const { return isDouble_; }

private:
  // Nodes are told apart by their arguments' address: trees share them.
  static const void *identity(const Expr &e) { return e.args().data(); }

  // 3 < 5 needs no detour through double: conversions are 16 times as dear as what they would prepare.
  static bool comparesIntegers(const Op &op, llvm::ArrayRef<ScalarOperand> operands) {
    static constexpr const char *comparisons[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    return llvm::any_of(comparisons, [&](const char *name) { return op.is(name); }) && isInteger(operands[0].dtype) &&
           operands[0].dtype == operands[1].dtype;
  }

  // Finds the tanh that stand nowhere but beside a 1, by themselves or squared: of 1 + tanh(u) and 1 - tanh(u)^2 only
  // the absolute error of tanh is seen.
  void markExact(const Expr &expr, bool isBesideOne) {
    if (expr.kind() != Expr::Kind::call || !(isBesideOne ? besideOne_ : exact_).insert(identity(expr)).second) return;
    llvm::StringRef f = expr.function();
    llvm::ArrayRef<Expr> args = expr.args();
    auto isOne = [](const Expr &e) { return e.kind() == Expr::Kind::constant && e.constantValue() == 1; };
    bool isSumWithOne = (f == "add" || f == "sub") && (isOne(args[0]) || isOne(args[1]));
    bool isSquare = f == "mul" && args[1].kind() == Expr::Kind::call && identity(args[0]) == identity(args[1]);
    for (const Expr &arg : args) markExact(arg, isSumWithOne || (isSquare && isBesideOne));
  }

  void countUses(const Expr &expr) {
    if (expr.kind() != Expr::Kind::call || ++uses_[identity(expr)] > 1) return;
    for (const Expr &arg : expr.args()) countUses(arg);
  }

  std::string literal(double value) const { return isDouble_ ? doubleLiteral(value) : floatLiteral(value); }

  Text visit(const Expr &expr) {
    if (expr.kind() == Expr::Kind::constant) {
      std::string text = literal(expr.constantValue());
      return {text, Form::number, text[0] == '-' ? kUnary : kAtom};
    }
    if (expr.kind() == Expr::Kind::input) {
      const ScalarOperand &operand = operands_[expr.inputIndex()];
      if (operand.dtype == DType::i1) return {operand.text, Form::boolean, kAtom};
      if (isInteger_) return {operand.text, Form::number, operand.text[0] == '(' ? kUnary : kAtom};
      if (isDouble_ && operand.dtype != DType::f64) return {"(double)" + operand.text, Form::number, kUnary};
      return {operand.text, Form::number, operand.text[0] == '-' ? kUnary : kAtom};
    }
    if (auto it = shared_.find(identity(expr)); it != shared_.end()) return it->second;
    Text text = call(expr);
    if (uses_[identity(expr)] == 1) return text;
    share(text);
    return shared_[identity(expr)] = text;
  }

  void share(Text &text) {
    std::string variable = names_.make(base_ + "_part");
    llvm::StringRef type = text.form == Form::boolean ? "bool" : isDouble_ ? "double" : "float";
    w_.line("const {0} {1} = {2};", type, variable, text.text);
    text = {variable, text.form, kAtom};
  }

  Text infix(const Expr &expr, llvm::StringRef symbol, Precedence binds, Form form, bool booleans) {
    Text a = visit(expr.args()[0]), b = visit(expr.args()[1]);
    bool comparesBooleans = binds == kEquality && a.form == Form::boolean && b.form == Form::boolean;
    if (booleans)
      a = toBoolean(a), b = toBoolean(b);
    else if (!comparesBooleans)
      a = toNumber(a), b = toNumber(b);
    auto tighter = static_cast<Precedence>(binds + 1); // the right side: a - (b - c)
    return {bracketed(a, binds) + " " + symbol.str() + " " + bracketed(b, tighter), form, binds};
  }

  Text call(const Expr &expr) {
    llvm::StringRef f = expr.function();
    if (f == "add") return infix(expr, "+", kSum, Form::number, false);
    if (f == "sub") return infix(expr, "-", kSum, Form::number, false);
    if (f == "mul") return infix(expr, "*", kProduct, Form::number, false);
    if (f == "div") return infix(expr, "/", kProduct, Form::number, false);
    if (f == "lt") return infix(expr, "<", kRelation, Form::boolean, false);
    if (f == "le") return infix(expr, "<=", kRelation, Form::boolean, false);
    if (f == "gt") return infix(expr, ">", kRelation, Form::boolean, false);
    if (f == "ge") return infix(expr, ">=", kRelation, Form::boolean, false);
    if (f == "eq") return infix(expr, "==", kEquality, Form::boolean, false);
    if (f == "ne") return infix(expr, "!=", kEquality, Form::boolean, false);
    if (f == "and") return infix(expr, "&&", kAnd, Form::boolean, true);
    if (f == "or") return infix(expr, "||", kOr, Form::boolean, true);
    if (f == "neg") return {"-" + bracketed(toNumber(visit(expr.args()[0])), kAtom), Form::number, kUnary};
    if (f == "not") return {"!" + bracketed(toBoolean(visit(expr.args()[0])), kAtom), Form::boolean, kUnary};
    if (f == "select") {
      Text c = toBoolean(visit(expr.args()[0])), a = visit(expr.args()[1]), b = visit(expr.args()[2]);
      if (a.form != b.form) a = toNumber(a), b = toNumber(b);
      return {bracketed(c, kOr) + " ? " + bracketed(a, kOr) + " : " + bracketed(b, kOr), a.form, kChoice};
    }
    std::string args;
    for (const Expr &arg : expr.args()) args += (args.empty() ? "" : ", ") + toNumber(visit(arg)).text;
    Form form = f == "isnan" || f == "isinf" ? Form::boolean : Form::number;
    llvm::StringRef function =
        llvm::StringSwitch<llvm::StringRef>(f)
            .Case("max", "maximum")
            .Case("min", "minimum")
            .Case("isnan", "isNan")
            .Case("isinf", "isInf")
            .Case("tanh", isDouble_ || exact_.contains(identity(expr)) ? "tanh" : "tanhBesideOne")
            .Default(f);
    return {"math::" + function.str() + "(" + args + ")", form, kAtom};
  }

  llvm::ArrayRef<ScalarOperand> operands_;
  CodeWriter &w_;
  NamePool &names_;
  std::string base_;
  bool isDouble_ = false, isInteger_ = false;
  llvm::SmallPtrSet<const void *, 16> exact_, besideOne_; // nodes with a use that needs all their digits; with another
  llvm::DenseMap<const void *, unsigned> uses_;
  llvm::DenseMap<const void *, Text> shared_;
};

} // namespace

std::string formulaText(const Op &op, llvm::ArrayRef<ScalarOperand> operands, CodeWriter &w, NamePool &names) {
  DType to = op.result().dtype();
  if (isUnsaturatedCast(op.site())) return llvm::formatv("roundTo<{0}>({1})", unsaturatedType(to), operands[0].text);
  if (op.is("cast")) return castText(operands[0].text, operands[0].dtype, to);
  llvm::SmallVector<Expr, 4> inputs;
  for (unsigned i = 0; i < operands.size(); ++i) inputs.push_back(Expr::input(i));
  FormulaWriter writer(op, operands, w, names);
  Text text = writer.write(op.def().formula.expr(inputs, op.site()));
  if (to == DType::i1) return writer.toBoolean(text).text;
  text = writer.toNumber(text);
  DType from = writer.isDouble() ? DType::f64 : DType::f32;
  if (from == to || (isNarrowFloat(to) && op.def().isChoice)) return text.text;
  return castText(text.text, from, to);
}

} // namespace fusor::codegen
