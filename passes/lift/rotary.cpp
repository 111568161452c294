// rotary: x * cos + concat(-x2, x1) * sin, where x1 and x2 are the halves of x, becomes one op; cos and sin are taken
// as they are. Where x is heads in front, [B, H, T, d], it is turned before they go there, so that the transposes
// cancel those of attention.
#include "ir/ops/op_def.h"
#include "passes/lift/family.h"

namespace fusor::passes {
namespace {

using ir::Dim, ir::Op, ir::Value;
using Integers = std::vector<int64_t>;

// The value that `part` is half of along the last dim: its first, or its second.
Value wholeOfHalf(Value part, bool second) {
  Op *op = part.op();
  if (!op || !(op->is("split") || op->is("slice"))) return {};
  Value x = op->operand(0u);
  if (x.rank() == 0 || part.shape().drop_back() != x.shape().drop_back()) return {};
  const Dim half = part.shape().back();
  if (half + half != x.shape().back()) return {};
  if (op->is("split"))
    return op->resultCount() == 2 && op->site().axis("axis", x.rank()) == x.rank() - 1 && part.index() == second
               ? x
               : Value();
  for (int64_t step : op->attr<Integers>("step"))
    if (step != 1) return {};
  return op->attr<ir::Shape>("start").back() == (second ? half : Dim(0)) ? x : Value();
}

// x where `value` is concat(-x2, x1).
Value beforeTurn(Value value) {
  Op *concat = madeBy(value, "concat");
  if (!concat || concat->operands().size() != 2 || concat->site().axis("axis", value.rank()) != value.rank() - 1)
    return {};
  Op *negated = madeBy(concat->operand(0u), "neg");
  if (!negated) return {};
  Value x = wholeOfHalf(negated->operand(0u), true);
  return x && wholeOfHalf(concat->operand(1), false) == x ? x : Value();
}

// The other operand of value = x * factor, of x's dtype and with its last dim; null where it is none.
Value factorOf(const Op &product, Value x) {
  for (unsigned i : {0u, 1u})
    if (product.operand(i) == x) {
      Value factor = product.operand(1 - i);
      bool fits = factor.dtype() == x.dtype() && factor.rank() >= 1 && factor.shape().back() == x.shape().back();
      return fits && product.result().type() == x.type() ? factor : Value();
    }
  return {};
}

// [.., 1, T, d] as [.., T, 1, d]; null where heads have angles of their own.
Value headsBehind(ir::Builder &b, Value angles) {
  if (angles.rank() < 2 || (angles.rank() > 2 && !angles.shape()[angles.rank() - 3].is(1))) return {};
  ir::Shape shape(angles.shape().begin(), angles.shape().end());
  if (shape.size() == 2) shape.insert(shape.begin(), Dim(1));
  std::swap(shape[shape.size() - 3], shape[shape.size() - 2]);
  return b.op("reshape", {angles}, {{"shape", shape}});
}

} // namespace

Finding findRotary(Op &op) {
  if (!op.is("add")) return Finding::none();
  for (unsigned i : {0u, 1u}) {
    Op *straight = madeBy(op.operand(i), "mul"), *across = madeBy(op.operand(1 - i), "mul");
    if (!straight || !across) return Finding::none();
    for (unsigned j : {0u, 1u}) {
      Value turned = across->operand(j), x = beforeTurn(turned);
      if (!x) continue;
      Value cos = factorOf(*straight, x), sin = factorOf(*across, turned);
      if (!cos || !sin) continue;
      Value y = op.result();
      if (!isWide(x)) return Finding::refused("small ops in {0} round in between", ir::name(x.dtype())).worth(y, {x});
      if (const Dim &last = x.shape().back(); !last.isConstant())
        return Finding::refused("the last dim of %{0} is {1}, it must be known", x.name(), last.str()).worth(y, {x});
      return Finding::found(y,
                            [=](ir::Builder &b) {
                              Op *heads = madeBy(x, "transpose");
                              if (heads && heads->attr<Integers>("perm") == Integers{0, 2, 1, 3})
                                if (Value c = headsBehind(b, cos), s = headsBehind(b, sin); c && s)
                                  return b.op("transpose", {b.op("rotary", {heads->operand(0u), c, s})},
                                              {{"perm", Integers{0, 2, 1, 3}}});
                              return b.op("rotary", {x, cos, sin});
                            })
          .worth(y, {x, cos, sin});
    }
  }
  return Finding::none();
}

} // namespace fusor::passes
