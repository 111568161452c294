// What a rule looks for: a tree of ops with captures.
//
//   const Pattern x = any("x"), w = any("w"), b = any("b");
//   op("add", {once(op("linear", {x, w})), b})
//
// matches the `add` of a linear's result, which nobody else reads, and anything; `add` is commutative in the op table,
// so both orders match. A capture that appears twice must be the same value both times.
#pragma once
#include "ir/graph/graph.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fusor::passes {

class Pattern {
public:
  enum class Kind : uint8_t { any, number, constant, op, elementwise };
  /// The same pattern; what it matches is captured as `name`.
  Pattern as(llvm::StringRef name) const;

  Kind kind() const { return kind_; }
  llvm::StringRef name() const { return name_; } // of the capture, or empty
  llvm::StringRef opName() const { return opName_; }
  std::optional<double> value() const { return value_; }
  bool isOnce() const { return once_; }
  /// Operand patterns; absent where the operands do not matter.
  const std::vector<Pattern> *operands() const { return operands_.get(); }

private:
  friend Pattern any(llvm::StringRef name);
  friend Pattern number(double value);
  friend Pattern constant(llvm::StringRef name);
  friend Pattern op(llvm::StringRef opName, std::vector<Pattern> operands);
  friend Pattern op(llvm::StringRef opName);
  friend Pattern elementwise();
  friend Pattern once(Pattern pattern);

  Kind kind_ = Kind::any;
  bool once_ = false;
  std::string name_, opName_;
  std::optional<double> value_;
  std::shared_ptr<const std::vector<Pattern>> operands_;
};

/// Any value, captured.
Pattern any(llvm::StringRef name);
/// The scalar constant `value`, of any dtype.
Pattern number(double value);
/// Any scalar constant, captured.
Pattern constant(llvm::StringRef name);
/// The first result of an op of that name. As many operand patterns as the op has operands.
Pattern op(llvm::StringRef opName, std::vector<Pattern> operands);
/// The same with any operands; a result of it other than the first matches too.
Pattern op(llvm::StringRef opName);
/// An op with a formula.
Pattern elementwise();
/// `pattern`, where the value has one use only.
Pattern once(Pattern pattern);

} // namespace fusor::passes
