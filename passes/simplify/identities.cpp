// Arithmetic and casts that do nothing.
#include "ir/ops/op_def.h"
#include "passes/simplify/simplify.h"

namespace fusor::passes {
namespace {

// Every value of `from` is one of `to`.
bool holdsExactly(ir::DType from, ir::DType to) {
  using enum ir::DType;
  if (from == to) return true;
  auto integerBits = [](ir::DType t) { return int(ir::byteSize(t)) * 8 - (ir::isSigned(t) ? 1 : 0); };
  if (from == i1) return to != f8e8m0; // which has no 0
  if (ir::isInteger(from)) {
    if (ir::isInteger(to)) return integerBits(to) >= integerBits(from) && (ir::isSigned(to) || !ir::isSigned(from));
    int exact = to == f64 ? 53 : to == f32 ? 24 : to == f16 ? 11 : to == bf16 ? 8 : 0;
    return integerBits(from) <= exact; // f16 reaches 65504 > 2^11
  }
  if (!ir::isFloat(to)) return false;
  switch (from) {
  case f64: return false;
  case f32: return to == f64;
  case f16:
  case bf16: return to == f32 || to == f64;
  case f8e8m0: return to == f32 || to == f64 || to == bf16;
  default: return !ir::isFp8(to);
  }
}

// cast(cast x): the inner one must lose nothing, then x can be rounded at once.
Verdict innerCastIsExact(const Match &m) {
  return m.require(holdsExactly(m["x"].dtype(), m["inner"].dtype()), "{0} does not hold every {1}",
                   ir::name(m["inner"].dtype()), ir::name(m["x"].dtype()));
}

} // namespace

llvm::ArrayRef<Rule> identityRules() {
  const Pattern x = any("x"), y = any("y");
  static const std::vector<Rule> rules = {
      // The other operand may have broadcast x: then the types differ and nothing fires.
      {"add-zero", op("add", {x, number(0)}), sameType, justX},
      {"sub-zero", op("sub", {x, number(0)}), sameType, justX},
      {"mul-one", op("mul", {x, number(1)}), sameType, justX},
      {"div-one", op("div", {x, number(1)}), sameType, justX},
      {"pow-one", op("pow", {x, number(1)}), sameType, justX},
      {"neg-neg", op("neg", {op("neg", {x})}), nullptr, justX},
      {"not-not", op("not", {op("not", {x})}), nullptr, justX},
      {"max-same", op("max", {x, x}), nullptr, justX},
      {"min-same", op("min", {x, x}), nullptr, justX},
      {"select-same", op("select", {y, x, x}), sameType, justX},
      {"add-neg", op("add", {x, op("neg", {y})}), nullptr,
       [](const Match &m, ir::Builder &b) -> Replacement {
         return b.op("sub", {m["x"], m["y"]});
       }},
      {"sub-neg", op("sub", {x, op("neg", {y})}), nullptr,
       [](const Match &m, ir::Builder &b) -> Replacement {
         return b.op("add", {m["x"], m["y"]});
       }},
      {"square", op("pow", {x, number(2)}), sameType,
       [](const Match &m, ir::Builder &b) -> Replacement {
         return b.op("mul", {m["x"], m["x"]});
       }},

      {"cast-same", op("cast", {x}), sameType, justX},
      {"cast-cast", op("cast", {op("cast", {x}).as("inner")}), innerCastIsExact,
       [](const Match &m, ir::Builder &b) -> Replacement {
         if (m["x"].dtype() == m.root().result().dtype()) return m["x"];
         return b.op("cast", {m["x"]}, m.root().attrs());
       }},
  };
  return rules;
}

} // namespace fusor::passes
