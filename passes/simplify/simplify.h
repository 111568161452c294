// Constants folded, equal ops merged, dead ones removed, and what does nothing taken out.
//
//   %a = cast %x {to = f32}        : f32[8]
//   %b = cast %a {to = bf16}       : bf16[8]
//   %c = constant {value = 2.0}              =>
//   %d = constant {value = 0.5}
//   %e = mul %c, %d
//   %y = mul %b, cast(%e)                          %y is %x
//
// The rules are in identities.cpp (arithmetic and casts) and movement.cpp. None changes a rounding: a result is what it
// was, but for the sign of a zero (x + 0).
#pragma once
#include "passes/context.h"
#include "passes/rewrite/rule.h"

namespace fusor::passes {

/// Every function, until nothing changes.
llvm::Expected<bool> simplify(ir::Module &module, PassContext &context);

/// x * 1, x + 0, neg(neg x), cast(cast x), ...
llvm::ArrayRef<Rule> identityRules();
/// reshape(reshape x), split(concat ...), transposes, broadcasts that an elementwise op does by itself, ...
llvm::ArrayRef<Rule> movementRules();

/// What rules that take something out are made of: "x has the result's type", "the result is x".
inline Verdict sameType(const Match &m) { return m.sameType("x"); }
inline Replacement justX(const Match &m, ir::Builder &) { return m["x"]; }

/// Scalar ops on constants become constants.
bool foldConstants(ir::Function &function, PassContext &context);
/// Ops with equal operands and attributes become the first of them.
bool mergeEqual(ir::Function &function, PassContext &context);

} // namespace fusor::passes
