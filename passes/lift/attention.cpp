// attention: softmax(scale q k^T, masked) v with heads in front, [B, H, T, d] or [B*H, T, d], becomes the op that reads
// [B, T, H*d]. The transposes around it cancel those that made heads.
#include "ir/ops/op_def.h"
#include "passes/lift/family.h"
#include "passes/lift/mask.h"
#include <algorithm>
#include <cmath>

namespace fusor::passes {
namespace {

using ir::Dim, ir::Op, ir::Shape, ir::Value;
using Integers = std::vector<int64_t>;

constexpr int64_t kMostHeadSize = 256; // of the kernels

// What `value` is a reshape of, where that only joins or splits dims in front of the last two.
Value beforeJoin(Value value) {
  while (Op *reshape = madeBy(value, "reshape")) {
    Value x = reshape->operand(0u);
    if (x.rank() < 3 || x.rank() > 4 || value.rank() < 3 || x.shape().take_back(2) != value.shape().take_back(2)) break;
    value = x;
  }
  return value;
}

// x [B, Hkv, T, d] where `value`, [B, H, T, d] or [B*H, T, d], has each head of it for several of queries, one after
// the other; else `value`.
Value beforeRepeat(Value value) {
  Op *join = madeBy(value, "reshape");
  Op *repeat = join ? madeBy(join->operand(0u), "broadcast") : nullptr;
  Op *insert = repeat ? madeBy(repeat->operand(0u), "reshape") : nullptr;
  if (!insert || value.rank() < 3 || value.rank() > 4 || insert->operand(0u).rank() != 4) return value;
  Value x = insert->operand(0u);
  auto shape = x.shape(), repeated = repeat->result().shape();
  const Shape inserted{shape[0], shape[1], Dim(1), shape[2], shape[3]};
  const bool repeatsHeads = insert->result().shape() == llvm::ArrayRef<Dim>(inserted) && repeated.size() == 5 &&
                            repeated.take_front(2) == shape.take_front(2) &&
                            repeated.take_back(2) == shape.take_back(2);
  const bool joinsThem = repeatsHeads && value.shape().take_back(2) == shape.take_back(2) &&
                         (value.rank() == 3 || value.shape()[1] == repeated[1] * repeated[2]);
  return joinsThem ? x : value;
}

// k as [.., Tk, d], where `value` is that transposed and says so.
Value beforeAcross(Value value, bool &across) {
  Op *transpose = across ? madeBy(value, "transpose") : nullptr;
  if (!transpose) return value;
  const auto &perm = transpose->attr<Integers>("perm");
  if (perm != Integers{0, 1, 3, 2} && perm != Integers{0, 2, 1}) return value;
  across = false;
  return beforeJoin(transpose->operand(0u));
}

/// What is between the softmax and q, k.
struct Scores {
  Op *product = nullptr;
  double scale = 1;
  Masks masks;
  llvm::SmallVector<Value, 2> added;
};

// Takes products and quotients with scalars off `value`.
Value unscaled(Value value, double &scale) {
  for (;;) {
    value = beforeJoin(value);
    Op *op = value.op();
    if (!op || !(op->is("mul") || op->is("div"))) return value;
    auto parts = scalarAndOther(*op);
    if (!parts || parts->second.type() != value.type() || (op->is("div") && parts->second != op->operand(0u)))
      return value;
    scale = op->is("mul") ? scale * parts->first : scale / parts->first;
    value = parts->second;
  }
}

bool leadsToProduct(Value value, unsigned depth = 8) {
  double scale = 1;
  value = unscaled(value, scale);
  if (madeBy(value, "matmul")) return true;
  Op *op = value.op();
  if (!op || depth == 0 || !(op->is("add") || op->is("select"))) return false;
  for (Value operand : op->operands())
    if (operand.type() == value.type() && leadsToProduct(operand, depth - 1)) return true;
  return false;
}

// "" or the first thing between softmax and product that attention cannot do.
std::string readScores(Value value, Scores &scores) {
  const Dim tq = value.shape()[value.rank() - 2], tk = value.shape().back();
  for (;;) {
    value = unscaled(value, scores.scale);
    Op *op = value.op();
    if (madeBy(value, "matmul")) return scores.product = op, "";
    std::string problem = llvm::formatv("scores %{0} are no product of q and k", value.name()).str();
    if (!op || !(op->is("add") || op->is("select"))) return problem;
    const unsigned first = op->is("select") ? 1 : 0;
    unsigned at = leadsToProduct(op->operand(first)) ? first : first + 1;
    Value inner = op->operand(at), other = op->operand(at == first ? first + 1 : first);
    if (inner.type() != value.type() || !leadsToProduct(inner)) return problem;
    ScoresAt here{Shape(value.shape().begin(), value.shape().end() - 2), tq, tk, scores.scale};
    problem = first ? scores.masks.select(op->operand(0u), other, at == 1, here) : scores.masks.add(other, here);
    if (!problem.empty()) return problem;
    if (!first) scores.added.push_back(other);
    value = inner;
  }
}

// The softmax behind what makes rows without a key 0, which attention does by itself: select(isnan(p), 0, p), and
// select(max(mask) == -inf, 0, p) where that mask is added to the scores. `mask`: that one, or null.
Value beforeEmptyRows(Value value, Value &mask) {
  Op *select = madeBy(value, "select");
  if (!select || scalarOf(select->operand(1)) != 0.0) return value;
  Value condition = select->operand(0u), p = select->operand(2);
  if (Op *isNan = madeBy(condition, "isnan"); isNan && isNan->operand(0u) == p) return p;
  while (Op *moved = madeBy(condition, "broadcast")) condition = moved->operand(0u);
  Op *equal = madeBy(condition, "eq");
  auto parts = equal ? scalarAndOther(*equal) : std::nullopt;
  if (!parts || parts->first != -std::numeric_limits<double>::infinity()) return value;
  Op *top = madeBy(parts->second, "reduce_max");
  if (!top || !reducesLastDim(*top)) return value;
  mask = top->operand(0u);
  return p;
}

/// q [B, H, Tq, d]; k [B, Hkv, Tk, d], or with kAcross [B, Hkv, d, Tk]; v [B, Hkv, Tk, d]. Of three dims: H is 1.
struct Heads {
  Value q, k, v;
  bool kAcross;
  Dim batch, heads, kvHeads, tq, tk, d;

  Heads(Value q, Value k, Value v, bool kAcross) : q(q), k(k), v(v), kAcross(kAcross) {
    batch = q.shape()[0], heads = q.rank() == 4 ? q.shape()[1] : Dim(1);
    kvHeads = v.rank() == 4 ? v.shape()[1] : Dim(1);
    tq = q.shape()[q.rank() - 2], d = q.shape().back(), tk = v.shape()[v.rank() - 2];
  }
  Dim lead() const { return batch * heads; }
  std::string whyNot() const {
    Shape lead{batch};
    if (q.rank() == 4) lead.push_back(kvHeads);
    for (auto [value, m, n] : {std::tuple(k, kAcross ? d : tk, kAcross ? tk : d), std::tuple(v, tk, d)}) {
      Shape wanted = lead;
      wanted.append({m, n});
      if (value.shape() != llvm::ArrayRef<Dim>(wanted))
        return llvm::formatv("%{0} is {1}, [{2}] is wanted", value.name(), value.type().str(),
                             ir::str(llvm::ArrayRef<Dim>(wanted)))
            .str();
    }
    if (!kvHeads.isConstant() || !heads.isConstant() || heads.value() % std::max<int64_t>(kvHeads.value(), 1))
      return llvm::formatv("{0} heads of queries and {1} of keys", heads.str(), kvHeads.str()).str();
    if (!d.isConstant() || d.value() > kMostHeadSize || d.value() < 1)
      return llvm::formatv("head size {0}: it must be known and at most {1}", d.str(), kMostHeadSize).str();
    return "";
  }
  // As the op reads it.
  Value flat(ir::Builder &b, Value x, bool across, const Dim &t, const Dim &count) const {
    Integers perm = x.rank() == 4 ? (across ? Integers{0, 3, 1, 2} : Integers{0, 2, 1, 3})
                                  : (across ? Integers{0, 2, 1} : Integers{0, 1, 2});
    Value rows = x.rank() == 3 && !across ? x : b.op("transpose", {x}, {{"perm", perm}});
    if (x.rank() == 3) return rows;
    return b.op("reshape", {rows}, {{"shape", Shape{batch, t, count * d}}});
  }
  // And back, in the shape the small ops gave.
  Value inFront(ir::Builder &b, Value y, llvm::ArrayRef<Dim> shape) const {
    if (q.rank() == 4) {
      y = b.op("reshape", {y}, {{"shape", Shape{batch, tq, heads, d}}});
      y = b.op("transpose", {y}, {{"perm", Integers{0, 2, 1, 3}}});
    }
    return y.shape() == shape ? y : b.op("reshape", {y}, {{"shape", Shape(shape.begin(), shape.end())}});
  }
};

// The form around `softmax`, whose probabilities `op` multiplies. `inputs` become q, k and v once they are found.
Finding attentionOf(Op &op, Op &softmax, Value maskOfEmptyRows, llvm::SmallVectorImpl<Value> &inputs) {
  Value p = softmax.result(), y = op.result();
  if (p.rank() < 3 || softmax.site().axis("axis", p.rank()) != p.rank() - 1)
    return Finding::refused("softmax %{0} is over dim {1} of {2}, over keys in the last of three or four is wanted",
                            p.name(), softmax.site().axis("axis", p.rank()), p.type().str());
  if (op.attr<bool>("trans_a") || op.attr<bool>("trans_b"))
    return Finding::refused("probabilities or values are transposed");
  Scores scores;
  if (std::string why = readScores(softmax.operand(0u), scores); !why.empty()) return Finding{why, {}, {}};
  if (maskOfEmptyRows && !llvm::is_contained(scores.added, maskOfEmptyRows))
    return Finding::refused("rows are 0 by %{0}, which is not added to the scores", maskOfEmptyRows.name());
  if (scores.product->attr<bool>("trans_a")) return Finding::refused("queries are transposed");
  bool kAcross = !scores.product->attr<bool>("trans_b");
  Value q = unscaled(scores.product->operand(0u), scores.scale), k = unscaled(scores.product->operand(1), scores.scale),
        v = beforeJoin(op.operand(1));
  inputs.assign({q, k, v});
  k = beforeRepeat(beforeAcross(k, kAcross)), v = beforeRepeat(v);
  if (!(scores.scale > 0)) return Finding::refused("the scale of the scores is {0}", scores.scale);
  if (!isWide(q) || q.dtype() != k.dtype() || q.dtype() != v.dtype() || y.dtype() != q.dtype() ||
      p.dtype() != q.dtype())
    return Finding::refused("small ops in {0} round in between", ir::name(q.dtype()));
  if (q.rank() < 3 || q.rank() > 4 || k.rank() != q.rank() || v.rank() != q.rank())
    return Finding::refused("q, k and v are {0}, {1}, {2}", q.type().str(), k.type().str(), v.type().str());
  Heads heads(q, k, v, kAcross);
  if (std::string why = heads.whyNot(); !why.empty()) return Finding{why, {}, {}};
  // Two leading dims that broadcast against each other would make more than there is.
  if (y.type().elements() != heads.lead() * heads.tq * heads.d ||
      scores.product->result().type().elements() != heads.lead() * heads.tq * heads.tk)
    return Finding::refused("products broadcast the dims in front: %{0} is {1}", y.name(), y.type().str());

  return Finding::found(y, [=, scale = scores.scale, masks = scores.masks](ir::Builder &b) {
    ir::Attrs attrs{{"heads", heads.heads.value()}};
    if (heads.kvHeads != heads.heads) attrs.set("kv_heads", heads.kvHeads.value());
    if (masks.causal()) attrs.set("causal", true);
    if (masks.hidden()) attrs.set("hidden", *masks.hidden());
    if (!isNear(scale, 1 / std::sqrt(static_cast<double>(heads.d.value())), q.dtype())) attrs.set("scale", scale);
    auto front = q.shape().drop_back(2);
    Value keys = masks.keyMask(b, front, heads.tk), bias = masks.bias(b, front, q.dtype());
    Value z = b.op("attention",
                   {heads.flat(b, q, false, heads.tq, heads.heads), heads.flat(b, k, kAcross, heads.tk, heads.kvHeads),
                    heads.flat(b, v, false, heads.tk, heads.kvHeads), keys, Value(), bias},
                   attrs);
    return heads.inFront(b, z, y.shape());
  });
}

} // namespace

Finding findAttention(Op &op) {
  if (!op.is("matmul")) return Finding::none();
  Value maskOfEmptyRows;
  Op *softmax = madeBy(beforeJoin(beforeEmptyRows(beforeJoin(op.operand(0u)), maskOfEmptyRows)), "softmax");
  if (!softmax) return Finding::none();
  llvm::SmallVector<Value, 3> inputs{softmax->operand(0u), op.operand(1)};
  Finding finding = attentionOf(op, *softmax, maskOfEmptyRows, inputs);
  return std::move(finding).worth(op.result(), inputs);
}

} // namespace fusor::passes
