// Movement that moves nothing, or could be one step instead of two.
#include "ir/graph/builder.h"
#include "ir/ops/op_def.h"
#include "passes/rewrite/constant.h"
#include "passes/simplify/simplify.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::passes {
namespace {

using ir::Shape, ir::Value;
using Integers = std::vector<int64_t>;

Replacement reshaped(const Match &m, ir::Builder &b) {
  return b.op("reshape", {m["x"]}, {{"shape", m.root().result().type().shape}});
}

// --- transpose

Integers composed(const Match &m) { // result dim i is dim inner[outer[i]] of x
  const auto &inner = m.op("inner").attr<Integers>("perm"), &outer = m.root().attr<Integers>("perm");
  Integers perm;
  for (int64_t i : outer) perm.push_back(inner[i]);
  return perm;
}

Verdict permutesNothing(const Match &m) {
  const auto &perm = m.root().attr<Integers>("perm");
  for (unsigned i = 0; i < perm.size(); ++i)
    if (perm[i] != i) return m.require(false, "dim {0} moves", i);
  return Verdict::yes();
}

// --- slice

bool allZero(llvm::ArrayRef<ir::Dim> dims) {
  return llvm::all_of(dims, [](const ir::Dim &d) { return d.is(0); });
}

Verdict slicesWhole(const Match &m) {
  return m.sameType("x") && m.require(allZero(m.root().attr<Shape>("start")) && m.root().attr<Integers>("step").empty(),
                                      "it does not begin at 0 in steps of 1");
}

// Bounds that hang on symbols are checked when a run's sizes are known, each slice's against its own operand: where one
// of the two takes a dim whole, the slice of both has the other's.
Verdict sliceMakesOne(const Match &m) {
  const ir::Op &outer = m.root(), &inner = m.op("inner");
  if (!outer.attr<Integers>("step").empty() || !inner.attr<Integers>("step").empty())
    return m.require(false, "a slice has steps");
  auto isWhole = [](const ir::Op &slice, unsigned i) {
    return slice.attr<Shape>("start")[i].is(0) && slice.attr<Shape>("size")[i] == slice.operand(0u).shape()[i];
  };
  auto isConstant = [](const ir::Op &slice, unsigned i) {
    return slice.attr<Shape>("start")[i].isConstant() && slice.attr<Shape>("size")[i].isConstant() &&
           slice.operand(0u).shape()[i].isConstant();
  };
  for (unsigned i = 0; i < outer.result().rank(); ++i)
    if (!isWhole(outer, i) && !isWhole(inner, i) && !(isConstant(outer, i) && isConstant(inner, i)))
      return m.require(false, "each of the two slices has bounds of its own to check");
  return Verdict::yes();
}

Replacement sliceOnce(const Match &m, ir::Builder &b) {
  const auto &inner = m.op("inner").attr<Shape>("start"), &outer = m.root().attr<Shape>("start");
  Shape start;
  for (unsigned i = 0; i < inner.size(); ++i) start.push_back(inner[i] + outer[i]);
  return b.op("slice", {m["x"]}, {{"start", start}, {"size", m.root().attr<Shape>("size")}});
}

// --- concat and split

// split(concat a, b, c): the same axis and the same sizes.
Verdict splitsWhereJoined(const Match &m) {
  const ir::Op &split = m.root(), &concat = m.op("joined");
  unsigned rank = concat.result().rank(), axis = split.site().axis("axis", rank);
  if (axis != concat.site().axis("axis", rank)) return m.require(false, "they are along different axes");
  const auto &sizes = split.attr<Shape>("sizes");
  bool same = sizes.size() == concat.operands().size();
  for (unsigned i = 0; same && i < sizes.size(); ++i) same = sizes[i] == concat.operand(i).shape()[axis];
  return m.require(same, "the parts have other sizes");
}

// concat of all parts of one split, in order, along its axis.
Verdict joinsAllParts(const Match &m) {
  const ir::Op &concat = m.root();
  const ir::Op *split = concat.operand(0u).op();
  if (!split || !split->is("split")) return m.require(false, "the first operand is no part of a split");
  unsigned rank = concat.result().rank();
  bool same = split->resultCount() == concat.operands().size() &&
              split->site().axis("axis", rank) == concat.site().axis("axis", rank);
  for (unsigned i = 0; same && i < concat.operands().size(); ++i) same = concat.operand(i) == split->result(i);
  return m.require(same, "the operands are not all parts of one split in order");
}

Verdict hasOneOperand(const Match &m) { return m.require(m.root().operands().size() == 1, "it joins several"); }
Verdict hasOneResult(const Match &m) { return m.require(m.root().resultCount() == 1, "it gives several"); }

// --- broadcast

// The operand that an elementwise op would broadcast by itself, or -1: without this `broadcast` the shape stays.
int absorbedBroadcast(const ir::Op &op) {
  for (unsigned i = 0; i < op.operands().size(); ++i) {
    Value operand = op.operand(i);
    if (!operand.op() || !operand.op()->is("broadcast")) continue;
    llvm::SmallVector<llvm::ArrayRef<ir::Dim>, 4> shapes;
    for (unsigned k = 0; k < op.operands().size(); ++k)
      shapes.push_back(k == i ? operand.op()->operand(0u).shape() : op.operand(k).shape());
    auto shape = ir::broadcastShapes(shapes);
    if (shape && llvm::ArrayRef<ir::Dim>(*shape) == op.result().shape()) return static_cast<int>(i);
  }
  return -1;
}

// A reshape that only puts 1s in front, as broadcasting does by itself.
Verdict reshapeAddsLeadingOnes(const Match &m) {
  auto inner = m["x"].shape(), outer = m["inner"].shape();
  bool adds = outer.size() >= inner.size() && outer.take_back(inner.size()) == inner &&
              llvm::all_of(outer.drop_back(inner.size()), [](const ir::Dim &d) { return d.is(1); });
  return m.require(adds, "the reshape does more than put 1s in front");
}

Verdict absorbs(const Match &m) {
  return m.require(absorbedBroadcast(m.root()) >= 0, "no operand is a broadcast that the others make again");
}

Replacement withoutBroadcast(const Match &m, ir::Builder &b) {
  llvm::SmallVector<Value, 4> operands(m.root().operands().begin(), m.root().operands().end());
  int i = absorbedBroadcast(m.root());
  operands[i] = operands[i].op()->operand(0u);
  return b.op(m.root().name(), operands, m.root().attrs());
}

// --- gather, iota

// The one index that `value` holds, where it is known now.
std::optional<int64_t> oneIndex(Value value) {
  if (!llvm::all_of(value.shape(), [](const ir::Dim &d) { return d.is(1); })) return std::nullopt;
  if (ir::Op *op = value.op(); op && op->is("constant")) return static_cast<int64_t>(op->attr<double>("value"));
  const ir::Persistent *stored = storedConstant(value);
  if (!stored) return std::nullopt;
  return static_cast<int64_t>(ir::loadElement(stored->type.dtype, stored->data->data(), 0));
}

unsigned gatherAxis(const Match &m) { return m.root().site().axis("axis", m["x"].rank()); }

// A symbol is 1 or more, so that 0 is inside.
Verdict gathersOne(const Match &m) {
  auto index = oneIndex(m["i"]);
  const ir::Dim &dim = m["x"].shape()[gatherAxis(m)];
  bool inside = index && *index >= 0 && (dim.isConstant() ? *index < dim.value() : *index == 0);
  return m.require(inside, "its index is not one known number inside of x");
}

Replacement slicedOnce(const Match &m, ir::Builder &b) {
  Shape start(m["x"].rank(), ir::Dim(0)), size(m["x"].shape().begin(), m["x"].shape().end());
  start[gatherAxis(m)] = ir::Dim(*oneIndex(m["i"])), size[gatherAxis(m)] = ir::Dim(1);
  Value slice = b.op("slice", {m["x"]}, {{"start", start}, {"size", size}});
  return b.op("reshape", {slice}, {{"shape", m.root().result().type().shape}});
}

Verdict countsOne(const Match &m) {
  const ir::Op &iota = m.root();
  return m.require(iota.result().shape()[iota.site().axis("axis", iota.result().rank())].is(1), "it counts further");
}

Replacement zeros(const Match &m, ir::Builder &b) {
  Value result = m.root().result();
  return b.op("broadcast", {b.constant(0, result.dtype())}, {{"shape", result.type().shape}});
}

// --- reductions

Verdict reducesSizeOne(const Match &m) {
  const auto &dims = m.root().attr<Integers>("dims");
  auto shape = m["x"].shape();
  bool one = dims.empty() ? llvm::all_of(shape, [](const ir::Dim &d) { return d.is(1); })
                          : llvm::all_of(dims, [&](int64_t d) { return shape[d < 0 ? d + shape.size() : d].is(1); });
  return m.require(one, "it reduces a dim that is not 1");
}

} // namespace

llvm::ArrayRef<Rule> movementRules() {
  const Pattern x = any("x");
  static const std::vector<Rule> rules = {
      {"reshape-same", op("reshape", {x}), sameType, justX},
      {"reshape-reshape", op("reshape", {op("reshape", {x})}), nullptr, reshaped},
      {"transpose-identity", op("transpose", {x}), permutesNothing, justX},
      {"transpose-transpose", op("transpose", {op("transpose", {x}).as("inner")}), nullptr,
       [](const Match &m, ir::Builder &b) -> Replacement {
         return b.op("transpose", {m["x"]}, {{"perm", composed(m)}});
       }},
      {"slice-whole", op("slice", {x}), slicesWhole, justX},
      {"slice-slice", op("slice", {op("slice", {x}).as("inner")}), sliceMakesOne, sliceOnce},
      {"pad-nothing", op("pad", {x}),
       [](const Match &m) {
         return m.require(allZero(m.root().attr<Shape>("before")) && allZero(m.root().attr<Shape>("after")),
                          "it adds elements");
       },
       justX},
      {"concat-one", op("concat"), hasOneOperand,
       [](const Match &m, ir::Builder &) -> Replacement { return m.root().operand(0u); }},
      {"split-one", op("split", {x}), hasOneResult, justX},
      {"split-concat", op("split", {op("concat").as("joined")}), splitsWhereJoined,
       [](const Match &m, ir::Builder &) -> Replacement { return m.op("joined").operands(); }},
      {"concat-split", op("concat"), joinsAllParts,
       [](const Match &m, ir::Builder &) -> Replacement { return m.root().operand(0u).op()->operand(0u); }},

      {"broadcast-same", op("broadcast", {x}), sameType, justX},
      {"broadcast-broadcast", op("broadcast", {op("broadcast", {x})}), nullptr,
       [](const Match &m, ir::Builder &b) -> Replacement {
         return b.op("broadcast", {m["x"]}, {{"shape", m.root().attr<Shape>("shape")}});
       }},
      {"broadcast-reshape", op("broadcast", {op("reshape", {x}).as("inner")}), reshapeAddsLeadingOnes,
       [](const Match &m, ir::Builder &b) -> Replacement {
         return b.op("broadcast", {m["x"]}, {{"shape", m.root().attr<Shape>("shape")}});
       }},
      {"absorb-broadcast", elementwise(), absorbs, withoutBroadcast},

      {"gather-one", op("gather", {x, any("i")}), gathersOne, slicedOnce},
      {"iota-size-one", op("iota"), countsOne, zeros},

      {"sum-size-one", op("sum", {x}), reducesSizeOne, reshaped},
      {"mean-size-one", op("mean", {x}), reducesSizeOne, reshaped},
      {"max-size-one", op("reduce_max", {x}), reducesSizeOne, reshaped},
      {"min-size-one", op("reduce_min", {x}), reducesSizeOne, reshaped},
  };
  return rules;
}

} // namespace fusor::passes
