// The fluent form in which entries of the op table are written:
//   op("silu").summary("x * sigmoid(x)").formula([](auto x) { return x / (1.0 + exp(-x)); }).gradient(...).samples(-8,
//   8)
// Only ir/ops/*.cpp include this.
#pragma once
#include "ir/ops/formula.h"
#include "ir/ops/op_def.h"

namespace fusor::ir {

class OpEntry {
public:
  explicit OpEntry(const char *name) { def_.name = name; }
  operator OpDef() && { return std::move(def_); }

  OpEntry &&summary(const char *text) { return def_.summary = text, std::move(*this); }
  /// "x", "bias?" (optional), "values..." (variadic).
  OpEntry &&operands(std::initializer_list<const char *> specs);
  OpEntry &&results(std::initializer_list<const char *> names) {
    return def_.results.assign(names.begin(), names.end()), std::move(*this);
  }

  OpEntry &&flag(const char *name, bool byDefault) {
    return attr({name, AttrKind::boolean, AttrValue(byDefault), false, {}, {}});
  }
  OpEntry &&integer(const char *name, int64_t byDefault) {
    return attr({name, AttrKind::integer, AttrValue(byDefault), false, {}, {}});
  }
  OpEntry &&integer(const char *name) { return attr({name, AttrKind::integer, {}, true, {}, {}}); }
  OpEntry &&real(const char *name, double byDefault) {
    return attr({name, AttrKind::real, AttrValue(byDefault), false, {}, {}});
  }
  OpEntry &&real(const char *name) { return attr({name, AttrKind::real, {}, true, {}, {}}); }
  /// The first choice is the default.
  OpEntry &&word(const char *name, std::initializer_list<const char *> choices);
  OpEntry &&required(const char *name, AttrKind kind) { return attr({name, kind, {}, true, {}, {}}); }
  OpEntry &&optional(const char *name, AttrKind kind) { return attr({name, kind, {}, false, {}, {}}); }
  OpEntry &&attr(AttrSpec spec) { return def_.attrs.push_back(std::move(spec)), std::move(*this); }
  /// What the attribute added last means.
  OpEntry &&note(const char *text) { return def_.attrs.back().summary = text, std::move(*this); }
  /// Its inclusive range.
  OpEntry &&range(double low, double high) { return def_.attrs.back().range = {low, high}, std::move(*this); }

  OpEntry &&lowering(Lowering l) { return def_.lowering = l, std::move(*this); }
  OpEntry &&types(TypeClass c) { return def_.typeClass = c, std::move(*this); }
  OpEntry &&precision(PrecisionClass p) { return def_.precision = p, std::move(*this); }
  OpEntry &&commutative() { return def_.isCommutative = true, std::move(*this); }
  OpEntry &&terminator() { return def_.isTerminator = true, std::move(*this); }
  OpEntry &&quantised() { return def_.takesQuantised = true, std::move(*this); }
  OpEntry &&ordered() { return def_.hasSideEffectOrder = true, std::move(*this); }
  OpEntry &&boolean() { return def_.yieldsBoolean = true, std::move(*this); }
  OpEntry &&choice() { return def_.isChoice = true, std::move(*this); }
  OpEntry &&untyped(std::initializer_list<unsigned> operands) {
    return def_.untypedOperands = operands, std::move(*this);
  }
  OpEntry &&samples(double low, double high) { return def_.sampleLow = low, def_.sampleHigh = high, std::move(*this); }
  OpEntry &&zeroGradient();
  OpEntry &&inPlace() { return def_.inPlaceOperand0 = true, std::move(*this); }

  OpEntry &&infer(decltype(OpDef::infer) f) { return def_.infer = f, std::move(*this); }
  OpEntry &&reference(decltype(OpDef::reference) f) { return def_.reference = f, std::move(*this); }
  OpEntry &&gradient(decltype(OpDef::gradient) f) { return def_.gradient = f, std::move(*this); }
  OpEntry &&expansion(decltype(OpDef::expansion) f) { return def_.expansion = f, std::move(*this); }

  /// One generic lambda over 1 to 4 numbers, perhaps with a `const OpSite &` at the end for attributes.
  template <typename F> OpEntry &&formula(F) {
    def_.formula = makeFormula<F>();
    def_.lowering = Lowering::pointwise;
    if (def_.operands.empty()) {
      static constexpr const char *names[] = {"a", "b", "c", "d"};
      for (unsigned i = 0; i < def_.formula.arity; ++i)
        def_.operands.push_back({def_.formula.arity == 1 ? "x" : names[i]});
    }
    def_.infer = inferElementwise;
    return std::move(*this);
  }
  /// Of a formula: a lambda over (operands..., dy) of graph values returning one value, or a std::array with one per
  /// operand.
  template <typename F>
  requires(!std::is_convertible_v<F, decltype(OpDef::gradient)>) OpEntry && gradient(F) {
    return def_.gradient = makeGradient<F>, std::move(*this);
  }

private:
  OpDef def_;
};

/// For infer hooks: attribute `attr` as an axis of `x` counted from the front, or why it is none.
llvm::Expected<unsigned> checkedAxis(const OpSite &site, const TensorType &x, llvm::StringRef attr = "axis");

inline OpEntry op(const char *name) { return OpEntry(name); }

} // namespace fusor::ir
