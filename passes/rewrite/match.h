// A pattern found in a function, or how near it came.
#pragma once
#include "passes/rewrite/pattern.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

namespace fusor::passes {

/// Whether a rule may fire, and why not.
class Verdict {
public:
  static Verdict yes() { return Verdict(""); }
  static Verdict no(std::string reason) { return Verdict(std::move(reason)); }
  explicit operator bool() const { return reason_.empty(); }
  const std::string &reason() const { return reason_; }
  /// The first refusal of the two.
  Verdict operator&&(const Verdict &other) const { return *this ? other : *this; }

private:
  explicit Verdict(std::string reason) : reason_(std::move(reason)) {}
  std::string reason_;
};

class Match {
public:
  explicit Match(ir::Op &root) : root_(&root) {}
  ir::Op &root() const { return *root_; }
  /// What a capture matched; asking for one the pattern does not have is our bug.
  ir::Value operator[](llvm::StringRef capture) const;
  ir::Value operator[](const Pattern &capture) const { return (*this)[capture.name()]; }
  /// The op that makes it.
  ir::Op &op(llvm::StringRef capture) const { return *(*this)[capture].op(); }
  /// The number of a captured constant.
  double number(llvm::StringRef capture) const;

  /// `holds`, or a refusal with the formatted reason.
  template <typename... Args> Verdict require(bool holds, const char *reason, Args &&...args) const {
    return holds ? Verdict::yes() : Verdict::no(llvm::formatv(reason, std::forward<Args>(args)...).str());
  }
  /// The captured value can stand for the root: same type.
  Verdict sameType(llvm::StringRef capture) const;

private:
  friend class Matcher;
  ir::Op *root_;
  llvm::StringMap<ir::Value> captures_;
};

/// How far a pattern got that did not match.
struct NearMiss {
  unsigned opsMatched = 0; // nodes of the pattern with an op, the root included
  std::string reason;      // of the failure at that depth
};

/// The first match of `pattern` with `root`, trying both orders of commutative ops; or nothing. Fills `miss` where
/// given.
std::optional<Match> match(const Pattern &pattern, ir::Op &root, NearMiss *miss = nullptr);

} // namespace fusor::passes
