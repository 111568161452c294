// Attention, its gradient, rotary embedding and the KV cache.
//
// Operands stay as a linear layer writes them: q [B, Tq, H*d], k and v [B, Tk, Hkv*d], head-major inside the last dim.
// A kernel can so read the three parts of a packed QKV projection in place, and nothing is transposed.
//   query i may see key j when  j <= i + (length - Tq)   (causal; `length` is kv_length, or Tk)
//                         and   j >  i + (length - Tq) - window   (window > 0)
//                         and   j <  length, and the key mask [B, Tk] is true.
// With `hidden` a query sees later keys too, each with that number in place of its scaled score. Then a bias is added.
// A query that sees no key, or whose scores are all -inf, gives 0 and passes no gradient.
#include "ir/ops/families.h"
#include "ir/ops/formula.h"
#include "ir/ops/indexing.h"
#include "ir/ops/op_builder.h"
#include "ir/ops/rounding.h"
#include <limits>

namespace fusor::ir {
namespace {

using Values = llvm::SmallVector<Value, 2>;
constexpr double kInf = std::numeric_limits<double>::infinity();

int64_t kvHeads(const OpSite &site) {
  return site.integer("kv_heads") ? site.integer("kv_heads") : site.integer("heads");
}

double attentionScale(const OpSite &site, int64_t headSize) {
  return site.has("scale") ? site.real("scale") : 1.0 / std::sqrt(static_cast<double>(headSize));
}

// [B, H, Tq, Tk], where each dim may be 1 instead.
llvm::Error checkBias(const TensorType &bias, DType dtype, llvm::ArrayRef<Dim> scores) {
  bool fits = bias.dtype == dtype && bias.rank() == 4;
  for (unsigned i = 0; fits && i < 4; ++i) fits = bias.dim(i).is(1) || bias.dim(i) == scores[i];
  if (fits) return llvm::Error::success();
  return opError("bias must be {0}[{1}], with any dim 1 instead, is {2}", name(dtype), str(scores), bias.str());
}

// Checks q, k, v at operands first, first + 1, first + 2.
llvm::Error checkAttention(const OpSite &site, unsigned first, unsigned mask, unsigned length) {
  const TensorType &q = site.type(first), &k = site.type(first + 1), &v = site.type(first + 2);
  if (q.rank() != 3 || k.rank() != 3 || k.shape != v.shape || k.dim(0) != q.dim(0) || !isFloat(q.dtype) ||
      q.dtype != k.dtype || q.dtype != v.dtype)
    return opError("needs q [B, Tq, H*d], k and v [B, Tk, Hkv*d] of one float dtype: {0}, {1}, {2}", q.str(), k.str(),
                   v.str());
  int64_t heads = site.integer("heads"), kv = kvHeads(site);
  if (!q.dim(2).isConstant() || q.dim(2).value() % heads)
    return opError("width {0} of q must be a multiple of heads = {1}", q.dim(2).str(), heads);
  int64_t d = q.dim(2).value() / heads;
  if (heads % kv || !k.dim(2).is(kv * d))
    return opError("k must have width kv_heads * {0} = {1} and kv_heads must divide heads = {2}, is {3}", d, kv * d,
                   heads, k.str());
  if (Value m = site.operand(mask))
    if (m.dtype() != DType::i1 || m.rank() != 2 || m.shape()[0] != k.dim(0) || m.shape()[1] != k.dim(1))
      return opError("key_mask must be i1[{0}, {1}], is {2}", k.dim(0).str(), k.dim(1).str(), m.type().str());
  if (Value l = site.operand(length))
    if (!isInteger(l.dtype()) || l.rank() != 0)
      return opError("kv_length must be an integer scalar, is {0}", l.type().str());
  return llvm::Error::success();
}

llvm::Expected<ResultTypes> inferAttention(const OpSite &site) {
  if (auto error = checkAttention(site, 0, 3, 4)) return error;
  const TensorType &q = site.type(0);
  if (site.has("hidden") && !site.flag("causal"))
    return opError("hidden is the score of keys that causal = true hides");
  if (Value bias = site.operand(5))
    if (auto error = checkBias(bias.type(), computeType(q.dtype),
                               {q.dim(0), Dim(site.integer("heads")), q.dim(1), site.type(1).dim(1)}))
      return error;
  return ResultTypes{q, {computeType(q.dtype), {q.dim(0), Dim(site.integer("heads")), q.dim(1)}}};
}

// The loops both references share: for each (batch, head, query) the probabilities of all keys, and where rows start.
struct AttentionLoop {
  int64_t batch, tq, tk, heads, kv, d;
  double scale;
  const RefTensor *q, *k, *v, *mask, *bias = nullptr;
  int64_t length;
  bool causal;
  std::optional<double> hidden;
  int64_t window;

  AttentionLoop(const RefCall &call, unsigned first, unsigned maskAt, unsigned lengthAt) {
    const OpSite &site = call.site;
    auto input = [&](unsigned i) { return i < call.inputs.size() ? call.inputs[i] : nullptr; };
    q = input(first), k = input(first + 1), v = input(first + 2), mask = input(maskAt);
    batch = q->dim(0), tq = q->dim(1), tk = k->dim(1), heads = site.integer("heads"), kv = kvHeads(site),
    d = q->dim(2) / heads;
    scale = attentionScale(site, d);
    length = input(lengthAt) ? std::min(static_cast<int64_t>(input(lengthAt)->data[0]), tk) : tk;
    causal = site.flag("causal"), window = site.integer("window");
    if (site.has("hidden")) hidden = site.real("hidden");
  }
  int64_t qRow(int64_t b, int64_t h, int64_t i) const { return ((b * tq + i) * heads + h) * d; }
  int64_t kRow(int64_t b, int64_t h, int64_t j) const { return ((b * tk + j) * kv + h / (heads / kv)) * d; }
  bool isLater(int64_t i, int64_t j) const { return causal && j > i + length - tq; }
  bool sees(int64_t b, int64_t i, int64_t j) const {
    int64_t last = i + length - tq;
    return j < length && (hidden || !isLater(i, j)) && (window == 0 || j > last - window) &&
           (!mask || mask->data[b * tk + j] != 0);
  }
  double biasOf(int64_t b, int64_t h, int64_t i, int64_t j) const {
    if (!bias) return 0;
    int64_t at = 0, index[] = {b, h, i, j};
    for (unsigned d = 0; d < 4; ++d) at = at * bias->dim(d) + (bias->dim(d) == 1 ? 0 : index[d]);
    return bias->data[at];
  }
  // Probabilities of row (b, h, i); returns the log of the sum of exp.
  double probabilities(int64_t b, int64_t h, int64_t i, std::vector<double> &p) const {
    p.assign(tk, -kInf);
    double top = -kInf, sum = 0;
    for (int64_t j = 0; j < tk; ++j) {
      if (!sees(b, i, j)) continue;
      double s = 0;
      for (int64_t e = 0; e < d; ++e) s += q->data[qRow(b, h, i) + e] * k->data[kRow(b, h, j) + e];
      p[j] = (isLater(i, j) ? *hidden : s * scale) + biasOf(b, h, i, j);
      top = std::max(top, p[j]);
    }
    for (double &s : p) s = top == -kInf ? 0 : std::exp(s - top), sum += s;
    for (double &s : p) s = sum > 0 ? s / sum : 0;
    return sum > 0 ? std::log(sum) + top : -kInf;
  }
};

void attentionReference(const RefCall &call) {
  AttentionLoop a(call, 0, 3, 4);
  if (call.inputs.size() > 5) a.bias = call.inputs[5];
  std::vector<double> p;
  for (int64_t b = 0; b < a.batch; ++b)
    for (int64_t h = 0; h < a.heads; ++h)
      for (int64_t i = 0; i < a.tq; ++i) {
        call.outputs[1].data[(b * a.heads + h) * a.tq + i] = a.probabilities(b, h, i, p);
        for (int64_t j = 0; j < a.tk; ++j)
          for (int64_t e = 0; e < a.d && p[j] != 0; ++e)
            call.outputs[0].data[a.qRow(b, h, i) + e] += p[j] * a.v->data[a.kRow(b, h, j) + e];
      }
  roundAll(call.outputs[0]);
}

llvm::Expected<ResultTypes> inferAttentionGrad(const OpSite &site) { // dy, q, k, v, y, lse, key_mask?, kv_length?
  if (auto error = checkAttention(site, 1, 6, 7)) return error;
  const TensorType &q = site.type(1);
  if (site.type(0).shape != q.shape || site.type(4).shape != q.shape)
    return opError("dy and y must have the shape of q {0}: {1} and {2}", q.str(), site.type(0).str(),
                   site.type(4).str());
  TensorType lse{computeType(q.dtype), {q.dim(0), Dim(site.integer("heads")), q.dim(1)}};
  if (site.type(5) != lse) return opError("lse must be {0}, is {1}", lse.str(), site.type(5).str());
  return ResultTypes{q, site.type(2), site.type(3)};
}

void attentionGradReference(const RefCall &call) {
  AttentionLoop a(call, 1, 6, 7);
  const RefTensor &dy = *call.inputs[0], &y = *call.inputs[4];
  RefTensor &dq = call.outputs[0], &dk = call.outputs[1], &dv = call.outputs[2];
  std::vector<double> p, dp(a.tk);
  for (int64_t b = 0; b < a.batch; ++b)
    for (int64_t h = 0; h < a.heads; ++h)
      for (int64_t i = 0; i < a.tq; ++i) {
        a.probabilities(b, h, i, p);
        int64_t row = a.qRow(b, h, i);
        double mean = 0; // sum over keys of p * dp, which is dy . y: with y as it was stored, as kernels have it
        for (int64_t e = 0; e < a.d; ++e) mean += dy.data[row + e] * y.data[row + e];
        for (int64_t j = 0; j < a.tk; ++j) {
          dp[j] = 0;
          for (int64_t e = 0; e < a.d && p[j] != 0; ++e) dp[j] += dy.data[row + e] * a.v->data[a.kRow(b, h, j) + e];
        }
        for (int64_t j = 0; j < a.tk; ++j) {
          if (p[j] == 0) continue;
          double ds = p[j] * (dp[j] - mean) * a.scale;
          int64_t key = a.kRow(b, h, j);
          for (int64_t e = 0; e < a.d; ++e) {
            dq.data[row + e] += ds * a.k->data[key + e];
            dk.data[key + e] += ds * a.q->data[row + e];
            dv.data[key + e] += p[j] * dy.data[row + e];
          }
        }
      }
  for (RefTensor &t : call.outputs) roundAll(t);
}

llvm::SmallVector<Value, 4> attentionGradient(const GradientSite &g) {
  Op &o = g.op;
  llvm::SmallVector<Value, 4> gradients(o.operands().size());
  if (!g.gradient()) return gradients;
  Value dy = g.builder.cast(g.gradient(), o.result(0).dtype());
  Op *grad = g.builder.make(
      "attention_grad",
      {dy, o.operand(0u), o.operand(1), o.operand(2), o.result(0), o.result(1), o.operand(3), o.operand(4)}, o.attrs());
  for (unsigned i = 0; i < 3; ++i) gradients[i] = grad->result(i);
  return gradients;
}

// The definition in small ops: heads to the front, scores, mask, softmax, weighted values.
Values expandAttention(Builder &b, const OpSite &site) {
  Value q = site.operand(0), k = site.operand(1), v = site.operand(2);
  DType out = q.dtype(), compute = computeType(out);
  int64_t heads = site.integer("heads"), kv = kvHeads(site), d = q.shape()[2].value() / heads, group = heads / kv;
  Dim B = q.shape()[0], tq = q.shape()[1], tk = k.shape()[1];
  auto headsFirst = [&](Value x, const Dim &t, int64_t n) { // [B, T, n*d] -> [B, n, T, d]
    Value split = b.op("reshape", {b.cast(x, compute)}, {{"shape", Shape{B, t, Dim(n), Dim(d)}}});
    return b.op("transpose", {split}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  };
  auto repeated = [&](Value x) { // each of kv heads for `group` query heads
    if (group == 1) return x;
    Value wide = b.op("broadcast", {b.op("reshape", {x}, {{"shape", Shape{B, Dim(kv), Dim(1), tk, Dim(d)}}})},
                      {{"shape", Shape{B, Dim(kv), Dim(group), tk, Dim(d)}}});
    return b.op("reshape", {wide}, {{"shape", Shape{B, Dim(heads), tk, Dim(d)}}});
  };
  Graph s = Graph(b, b.op("matmul", {headsFirst(q, tq, heads), repeated(headsFirst(k, tk, kv))}, {{"trans_b", true}})) *
            attentionScale(site, d);
  auto index = [&](const Dim &n, bool column) { // 0..n-1 as i32 [n, 1] or [1, n]
    return Graph(
        b, b.op("iota", {}, {{"shape", column ? Shape{Dim(1), n} : Shape{n, Dim(1)}}, {"axis", int64_t(column)}}));
  };
  Graph length(b, site.operand(4) ? b.cast(site.operand(4), DType::i32)
                                  : b.op("extent", {}, {{"shape", Shape{tk}}, {"dtype", DType::i32}}));
  Graph i = index(tq, false), j = index(tk, true);
  Graph last = i + (length - Graph(b, b.op("extent", {}, {{"shape", Shape{tq}}, {"dtype", DType::i32}})));
  Graph sees = j < length;
  if (site.has("hidden"))
    s = select(j <= last, s, site.real("hidden"));
  else if (site.flag("causal"))
    sees = sees && j <= last;
  if (Value bias = site.operand(5)) s = s + Graph(b, bias);
  if (int64_t window = site.integer("window")) sees = sees && j > last - static_cast<double>(window);
  if (Value mask = site.operand(3))
    sees = sees && Graph(b, b.op("reshape", {mask}, {{"shape", Shape{B, Dim(1), Dim(1), tk}}}));
  s = select(sees, s, -kInf);
  Graph top = s.max(-1);
  Graph safeTop = select(top > -kInf, top, 0.0); // a row that sees nothing has top = -inf
  Graph e = exp(s - safeTop), sum = e.sum(-1);
  Graph p = e / select(sum > 0.0, sum, 1.0);
  Value o = b.op("matmul", {p, repeated(headsFirst(v, tk, kv))});
  o = b.op("reshape", {b.op("transpose", {o}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}})},
           {{"shape", q.type().shape}});
  Graph lse = log(sum) + safeTop;
  return {b.cast(o, out), b.op("reshape", {lse}, {{"shape", Shape{B, Dim(heads), tq}}})};
}

// --- rotary embedding: pairs (i, i + d/2), or (2i, 2i + 1) where interleaved, turned by position * base^(-2i/d)

llvm::Expected<ResultTypes> inferRope(const OpSite &site) {
  const TensorType &x = site.type(0), &positions = site.type(1);
  int64_t heads = site.integer("heads");
  if (x.rank() != 3 || !x.dim(2).isConstant() || x.dim(2).value() % heads || (x.dim(2).value() / heads) % 2 ||
      !isFloat(x.dtype))
    return opError("needs x [B, T, heads*d] with an even d for heads = {0}, is given {1}", heads, x.str());
  if (!isInteger(positions.dtype) || positions.rank() != 1 || positions.dim(0) != x.dim(1))
    return opError("positions must be integers [{0}], are {1}", x.dim(1).str(), positions.str());
  return ResultTypes{x};
}

Values expandRope(Builder &b, const OpSite &site) {
  Value x = site.operand(0);
  int64_t heads = site.integer("heads"), d = x.shape()[2].value() / heads, half = d / 2;
  Dim B = x.shape()[0], T = x.shape()[1];
  DType compute = computeType(x.dtype());
  bool interleaved = site.flag("interleaved");
  Shape paired = interleaved ? Shape{B, T, Dim(heads), Dim(half), Dim(2)} : Shape{B, T, Dim(heads), Dim(2), Dim(half)};
  int64_t axis = interleaved ? 4 : 3;
  Op *parts = b.make("split", {b.op("reshape", {b.cast(x, compute)}, {{"shape", paired}})},
                     {{"axis", axis}, {"sizes", Shape{Dim(1), Dim(1)}}});
  Graph x1(b, parts->result(0)), x2(b, parts->result(1));
  // Angles [T, 1, 1, half] (or [T, 1, half, 1]) broadcast against both halves.
  Shape frequencyShape = interleaved ? Shape{Dim(half), Dim(1)} : Shape{Dim(1), Dim(half)};
  Graph i(b, b.cast(b.op("iota", {}, {{"shape", frequencyShape}, {"axis", int64_t(interleaved ? 0 : 1)}}), compute));
  Graph frequency = exp(i * (-2.0 * std::log(site.real("base")) / static_cast<double>(d)));
  Graph position(b, b.op("reshape", {b.cast(site.operand(1), compute)}, {{"shape", Shape{T, Dim(1), Dim(1), Dim(1)}}}));
  Graph angle = position * frequency * (site.flag("inverse") ? -1.0 : 1.0);
  Graph c = cos(angle), s = sin(angle);
  Value y = b.op("concat", {x1 * c - x2 * s, x2 * c + x1 * s}, {{"axis", axis}});
  return {b.cast(b.op("reshape", {y}, {{"shape", x.type().shape}}), x.dtype())};
}

// --- rotary embedding with its cosines and sines at hand, as exporters write it

llvm::Expected<ResultTypes> inferRotary(const OpSite &site) {
  const TensorType &x = site.type(0), &cos = site.type(1), &sin = site.type(2);
  if (x.rank() < 1 || !x.shape.back().isConstant() || x.shape.back().value() % 2 || !isFloat(x.dtype))
    return opError("needs floats with an even last dim, is given {0}", x.str());
  for (const TensorType *t : {&cos, &sin}) {
    auto together = broadcastShapes({x.shape, t->shape});
    if (t->dtype != x.dtype || t->rank() < 1 || t->shape.back() != x.shape.back() || !together || *together != x.shape)
      return opError("cos and sin must broadcast to x {0} with its last dim: {1} and {2}", x.str(), cos.str(),
                     sin.str());
  }
  return ResultTypes{x};
}

Values expandRotary(Builder &b, const OpSite &site) {
  Value x = site.operand(0);
  const int64_t half = x.shape().back().value() / 2;
  Op *halves = b.make("split", {wide(b, x)}, {{"axis", int64_t(-1)}, {"sizes", Shape{Dim(half), Dim(half)}}});
  Value turned = b.op("concat", {b.op("neg", {halves->result(1)}), halves->result(0)}, {{"axis", int64_t(-1)}});
  return {b.cast(wide(b, x) * wide(b, site.operand(1)) + Graph(b, turned) * wide(b, site.operand(2)), x.dtype())};
}

// --- KV cache: rows position, position + 1, ... of the cache are replaced

llvm::Expected<ResultTypes> inferCacheWrite(const OpSite &site) {
  const TensorType &cache = site.type(0), &rows = site.type(1);
  if (cache.rank() != 3 || rows.rank() != 3 || cache.dtype != rows.dtype || cache.dim(0) != rows.dim(0) ||
      cache.dim(2) != rows.dim(2))
    return opError("needs cache [B, C, D] and rows [B, T, D] of one dtype: {0} and {1}", cache.str(), rows.str());
  if (!isInteger(site.type(2).dtype) || site.type(2).rank() != 0)
    return opError("position must be an integer scalar, is {0}", site.type(2).str());
  return ResultTypes{cache};
}

void cacheWriteReference(const RefCall &call) {
  const RefTensor &cache = *call.inputs[0], &rows = *call.inputs[1];
  auto position = static_cast<int64_t>(call.inputs[2]->data[0]);
  call.outputs[0].data = cache.data;
  int64_t capacity = cache.dim(1), t = rows.dim(1), d = cache.dim(2);
  for (int64_t b = 0; b < cache.dim(0); ++b)
    for (int64_t i = 0; i < t; ++i)
      if (position + i >= 0 && position + i < capacity) // rows past the capacity are dropped
        std::copy_n(rows.data.begin() + (b * t + i) * d, d,
                    call.outputs[0].data.begin() + (b * capacity + position + i) * d);
}

OpEntry &&attentionAttrs(OpEntry &&entry) {
  return std::move(entry)
      .integer("heads")
      .note("of queries; q is heads * d wide")
      .range(1, 1 << 20)
      .integer("kv_heads", 0)
      .note("of keys and values, a divisor of heads; 0: as many as heads")
      .range(0, 1 << 20)
      .flag("causal", false)
      .note("a query sees no later key")
      .integer("window", 0)
      .note("how many keys a query sees back, itself included; 0: all")
      .range(0, 1e15)
      .optional("scale", AttrKind::real)
      .note("of the scores; absent: 1 / sqrt(d)")
      .lowering(Lowering::attention)
      .precision(PrecisionClass::low);
}

} // namespace

llvm::ArrayRef<OpDef> attentionOps() {
  static const std::vector<OpDef> ops = {
      attentionAttrs(op("attention")
                         .summary("softmax(q k^T scale + bias) v per head, with causal, window, length and key masks")
                         .operands({"q", "k", "v", "key_mask?", "kv_length?", "bias?"})
                         .results({"y", "lse"})
                         .untyped({3, 4, 5})
                         .optional("hidden", AttrKind::real)
                         .note("with causal: what the scaled scores of later keys become; absent: they are not seen"))
          .infer(inferAttention)
          .reference(attentionReference)
          .gradient(attentionGradient)
          .gradientCovers([](const OpSite &site) { return !site.operand(5) && !site.has("hidden"); })
          .expansion(expandAttention),
      attentionAttrs(op("attention_grad")
                         .summary("gradients of q, k and v")
                         .operands({"dy", "q", "k", "v", "y", "lse", "key_mask?", "kv_length?"})
                         .results({"dq", "dk", "dv"})
                         .untyped({6, 7}))
          .infer(inferAttentionGrad)
          .reference(attentionGradReference),
      op("rope")
          .summary("rotary position embedding of x [B, T, heads*d] at positions [T]")
          .operands({"x", "positions"})
          .integer("heads")
          .note("x is heads * d wide, d even")
          .range(1, 1 << 20)
          .real("base", 10000.0)
          .note("of the frequencies")
          .range(1, 1e12)
          .flag("interleaved", false)
          .note("pairs are (2i, 2i + 1) instead of (i, i + d/2)")
          .flag("inverse", false)
          .note("turn back: the gradient of a rope")
          .untyped({1})
          .lowering(Lowering::expansion)
          .infer(inferRope)
          .expansion(expandRope)
          .gradient([](const GradientSite &g) -> llvm::SmallVector<Value, 4> { // a rotation's transpose is its inverse
            Attrs attrs = g.op.attrs();
            if (g.op.attr<bool>("inverse"))
              attrs.erase("inverse");
            else
              attrs.set("inverse", true);
            return {g.builder.op("rope", {g.gradient(), g.op.operand(1)}, attrs), Value()};
          }),
      op("rotary")
          .summary("x * cos + (-x2, x1) * sin, with x = (x1, x2) the halves of the last dim: rotary embedding")
          .operands({"x", "cos", "sin"})
          .lowering(Lowering::expansion)
          .infer(inferRotary)
          .expansion(expandRotary),
      op("cache_write")
          .summary("the cache with rows from position on replaced; rows past its capacity are dropped")
          .operands({"cache", "rows", "position"})
          .untyped({2})
          .lowering(Lowering::indexMap)
          .inPlace()
          .infer(inferCacheWrite)
          .reference(cacheWriteReference),
  };
  return ops;
}

} // namespace fusor::ir
