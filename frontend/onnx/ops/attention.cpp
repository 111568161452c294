// Attention and rotary embedding, written out in small ops: passes lift them again where a kernel has the form at hand.
#include "frontend/onnx/ops/heads.h"
#include <cmath>
#include <limits>

namespace fusor::onnx {

using ir::Dim, ir::DType, ir::Shape;

namespace {

Term plus(Term a, Term b) { return a ? a + b : b; }

// The mask input as a bias; columns it does not have are masked.
Term maskBias(NodeSite &s, Term mask, const Dim &keys, DType compute) {
  if (!mask) return {};
  Term bias = mask.dtype() == DType::i1 ? zeroOrInf(mask, compute) : mask.cast(compute);
  if (!bias || mask.rank() == 0) return bias;
  Dim given = mask.dim(-1), missing = keys - given;
  if (given.is(1) || missing.is(0)) return bias;
  if (!s.writer().demandAtLeast(missing, 0))
    return s.fail("attn_mask {0} is longer than the {1} keys", mask.typeText(), keys.str());
  Shape before(mask.rank(), Dim(0)), after = before;
  after.back() = missing;
  return bias.apply("pad", {{"before", before}, {"after", after}, {"value", -kInf}});
}

void attention(NodeSite &s) {
  Term q = s.in(0), k = s.in(1), v = s.in(2);
  int64_t qHeads = s.integer("q_num_heads", 0), kvHeads = s.integer("kv_num_heads", 0),
          mode = s.integer("qk_matmul_output_mode", 0);
  bool causal = s.integer("is_causal", 0) != 0;
  double softcap = s.real("softcap", 0);
  s.ignore("softmax_precision"); // it is in f32, or f64 where the inputs are
  int64_t left = s.version() >= 24 ? s.integer("left_window_size", -1) : -1,
          right = s.version() >= 24 ? s.integer("right_window_size", -1) : -1;
  if (s.failed()) return;
  if (left < -1 || right < -1) return void(s.fail("a window size is below -1"));
  if (mode < 0 || mode > 3) return void(s.fail("qk_matmul_output_mode must be in 0..3, is {0}", mode));
  if (q.rank() != k.rank() || q.rank() != v.rank() || (q.rank() != 3 && q.rank() != 4))
    return void(s.fail("Q, K and V must all have 3 or all have 4 dims: {0}, {1}, {2}", q.typeText(), k.typeText(),
                       v.typeText()));
  bool flat = q.rank() == 3;
  DType dtype = q.dtype(), compute = wide(dtype);
  if (flat) q = headsFirst(s, q, qHeads), k = headsFirst(s, k, kvHeads), v = headsFirst(s, v, kvHeads);
  Term pastKey = s.optionalIn(4), pastValue = s.optionalIn(5), valid = s.optionalIn(6);
  if (s.failed()) return;
  if (static_cast<bool>(pastKey) != static_cast<bool>(pastValue))
    return void(s.fail("past_key and past_value must be given together"));
  if (valid && pastKey) return void(s.fail("nonpad_kv_seqlen and past_key exclude each other"));
  Dim pastLength = pastKey ? pastKey.dim(2) : Dim(0);
  if (pastKey) k = s.writer().concat({pastKey, k}, 2), v = s.writer().concat({pastValue, v}, 2);
  if (s.wants(1)) s.out(1, k);
  if (s.wants(2)) s.out(2, v);
  auto group = q.dim(1).divide(k.dim(1));
  if (s.failed()) return;
  if (!group || k.dim(1) != v.dim(1))
    return void(s.fail("{0} heads of queries are no multiple of {1} heads of keys (values have {2})", q.dim(1).str(),
                       k.dim(1).str(), v.dim(1).str()));
  if (!q.dim(3).isConstant() || q.dim(3).is(0))
    return void(s.fail("the head size {0} must be a number above 0", q.dim(3).str()));
  double scale = s.hasAttr("scale") ? s.real("scale", 1) : 1 / std::sqrt(static_cast<double>(q.dim(3).value()));
  Dim queries = q.dim(2), keys = k.dim(2);

  Writer &w = s.writer();
  Term bias = maskBias(s, s.optionalIn(3), keys, compute);
  if (causal || left >= 0 || right >= 0 || valid) {
    Term i = w.iota({Dim(1), Dim(1), queries, Dim(1)}, 2), j = w.iota({Dim(1), Dim(1), Dim(1), keys}, 3), length;
    if (valid) length = valid.cast(DType::i64).reshape({valid.dim(0), Dim(1), Dim(1), Dim(1)});
    Term place = length    ? i + (length - w.extent(queries, DType::i64))
                 : pastKey ? i + w.extent(pastLength, DType::i64)
                           : i;
    auto allow = [&](Term allowed) { bias = plus(bias, zeroOrInf(allowed, compute)); };
    if (causal) allow(j <= place);
    if (left >= 0) allow(place - j <= w.constant(static_cast<double>(left), DType::i64));
    if (right >= 0) allow(j - place <= w.constant(static_cast<double>(right), DType::i64));
    if (length) allow(j < length);
  }
  Term scores = w.op("matmul", {q.cast(compute) * scale, repeated(k, *group).cast(compute)}, {{"trans_b", true}});
  Term shownScores = scores;
  if (softcap > 0) scores = (scores / softcap).apply("tanh") * softcap;
  if (mode == 1) shownScores = scores;
  if (bias) scores = scores + bias;
  if (mode == 2) shownScores = scores;
  Term p = scores.apply("softmax");
  if (bias) { // a query that sees no key gives 0
    Term top = bias.rank() ? bias.reduce("reduce_max", {-1}) : bias;
    p = select(top == w.constant(-kInf, compute), w.constant(0, compute), p);
  }
  if (mode == 3) shownScores = p;
  if (s.wants(3)) s.out(3, shownScores.cast(dtype));
  Term y = w.op("matmul", {p, repeated(v, *group).cast(compute)}).cast(v.dtype());
  s.out(0, flat ? headsLast(y) : y);
}

// --- rotary embedding

// x [B, N, S, d] or [B, S, N*d]; `angles` gives a cache's rows as [B, S, r/2].
void rotary(NodeSite &s, Term x, int64_t heads, int64_t size, bool interleaved, Term cos, Term sin) {
  if (!x || !cos || !sin) return;
  bool flat = x.rank() == 3;
  Shape own = x.shape();
  if (flat) {
    auto d = heads > 0 ? x.dim(2).divide(Dim(heads)) : std::nullopt;
    if (!d) return void(s.fail("attribute 'num_heads' = {0} does not divide {1}", heads, x.typeText()));
    x = x.reshape({x.dim(0), x.dim(1), Dim(heads), *d});
  } else if (x.rank() != 4) {
    return void(s.fail("needs 3 or 4 dims, is given {0}", x.typeText()));
  }
  Dim r = size ? Dim(size) : x.dim(3);
  if (cos.rank() != 3 || sin.shape() != cos.shape() || cos.dim(2) * Dim(2) != r || size < 0 ||
      !s.writer().demandAtLeast(x.dim(3) - r, 0))
    return void(s.fail("caches {0} and {1} do not fit {2} rotated of {3}", cos.typeText(), sin.typeText(), r.str(),
                       x.typeText()));
  unsigned headDim = flat ? 2 : 1;
  auto spread = [&](Term t) {
    Shape shape = t.shape();
    shape.insert(shape.begin() + headDim, Dim(1));
    return t.reshape(std::move(shape));
  };
  s.out(0, turned(x, spread(cos), spread(sin), r, interleaved).reshape(own));
}

void rotaryEmbedding(NodeSite &s) {
  Term x = s.in(0), cos = s.in(1), sin = s.in(2), ids = s.optionalIn(3);
  int64_t heads = s.integer("num_heads", 0), size = s.integer("rotary_embedding_dim", 0);
  bool interleaved = s.integer("interleaved", 0) != 0;
  ir::Attrs rows{{"axis", int64_t(0)}};
  if (ids) cos = s.writer().op("gather", {cos, ids}, rows), sin = s.writer().op("gather", {sin, ids}, rows);
  rotary(s, x, heads, size, interleaved, cos, sin);
}

// com.microsoft has another order of inputs; one position is where the sequence starts.
void rotaryEmbeddingMicrosoft(NodeSite &s) {
  Term x = s.in(0), ids = s.in(1), cos = s.in(2), sin = s.in(3);
  int64_t heads = s.integer("num_heads", 0), size = s.integer("rotary_embedding_dim", 0);
  bool interleaved = s.integer("interleaved", 0) != 0;
  if (s.real("scale", 1) != 1) s.fail("attribute 'scale' is not supported");
  s.integer("is_packed_batching", 0);
  if (s.failed()) return;
  Dim batch = x.dim(0), length = x.rank() == 4 ? x.dim(2) : x.dim(1);
  if (x.rank() == 3 && heads == 0 && cos.rank() == 2) { // a head is as wide as the cache says
    auto n = x.dim(2).divide(cos.dim(1) * Dim(2));
    if (n && n->isConstant()) heads = n->value();
  }
  if (ids.rank() <= 1)
    ids = (ids.cast(DType::i64).reshape({Dim(1), Dim(1)}) + s.writer().iota({Dim(1), length}, 1))
              .broadcast({batch, length});
  ir::Attrs rows{{"axis", int64_t(0)}};
  cos = s.writer().op("gather", {cos, ids}, rows), sin = s.writer().op("gather", {sin, ids}, rows);
  rotary(s, x, heads, size, interleaved, cos, sin);
}

} // namespace

llvm::ArrayRef<OpEntry> attentionOperators() {
  static const std::vector<OpEntry> entries = {
      {"", "Attention", 23, attention},
      {"", "RotaryEmbedding", 23, rotaryEmbedding},
      {"com.microsoft", "RotaryEmbedding", 1, rotaryEmbeddingMicrosoft},
  };
  return entries;
}

} // namespace fusor::onnx
