// A rule is a value: what to look for, when it may fire, what to put there. rewriteToFixpoint applies a table of them.
//
//   const Pattern x = any("x"), w = any("w"), b = any("b");
//   {.name    = "fold-bias",
//    .match   = op("add", {once(op("linear", {x, w})), b}),
//    .when    = [](const Match &m) { return m.require(m["b"].rank() == 1, "bias must be a vector, is {0}", ...); },
//    .rewrite = [](const Match &m, ir::Builder &at) { return at.op("linear", {m["x"], m["w"], m["b"]}); }}
//
// The engine spends fuel, honours --disable-rule, names what was refused and, for `fusor explain`, how near each rule
// came.
#pragma once
#include "ir/graph/builder.h"
#include "passes/context.h"
#include "passes/rewrite/match.h"

namespace fusor::passes {

/// What takes the place of the root's results, in order.
struct Replacement {
  llvm::SmallVector<ir::Value, 2> values;
  Replacement(ir::Value value) : values{value} {}
  Replacement(llvm::ArrayRef<ir::Value> values) : values(values.begin(), values.end()) {}
};

struct Rule {
  llvm::StringRef name;
  Pattern match;
  Verdict (*when)(const Match &match) = nullptr; // null: always
  /// Inserts before the root, with the root's location. The values must have the types of the root's results.
  Replacement (*rewrite)(const Match &match, ir::Builder &at) = nullptr;
  /// Refusals and near misses are recorded where options.explain is set: for fusions and lifts, where a user waits for
  /// the rule; not for clean-up.
  bool explained = false;
};

/// Applies `rules` to every op of the function's own block, in order of the ops and then of the rules, until none
/// fires. What is left without users is erased. Rules that never come to rest are our bug: the one that fired last is
/// named.
bool rewriteToFixpoint(ir::Function &function, llvm::ArrayRef<Rule> rules, PassContext &context);

} // namespace fusor::passes
