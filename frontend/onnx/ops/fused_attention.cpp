// com.microsoft's Attention and MultiHeadAttention: projections, masks and caches in forms of their own, written out in
// small ops as the standard's Attention is. Inputs of the other forms (packed tokens, caches that grow in place) are
// refused by name.
#include "frontend/onnx/ops/heads.h"
#include <cmath>
#include <limits>

namespace fusor::onnx {

using ir::Dim, ir::DType, ir::Shape;

namespace {

// Every one [B, N, T, d].
struct Heads {
  Term q, k, v;
  Dim past; // how many keys came before the queries
};

// 0 where `keep`, `filter` elsewhere.
Term filtered(Term keep, double filter) {
  if (!keep) return {};
  Writer &w = keep.writer();
  return select(keep, w.constant(0, DType::f32), w.constant(filter, DType::f32));
}

// The key mask of both operators as a bias: numbers of keys [B], ends and starts [2B], or 1 = keep as [B, T], [B, S,
// T].
Term keyBias(NodeSite &s, Term mask, const Heads &h, double filter) {
  if (!mask) return {};
  Writer &w = s.writer();
  Dim batch = h.q.dim(0), queries = h.q.dim(2), keys = h.k.dim(2);
  if (mask.dtype() != DType::i32) return s.fail("the key mask must be i32, is {0}", mask.typeText());
  Term j = w.iota({Dim(1), Dim(1), Dim(1), keys}, 3, DType::i32);
  auto column = [&](Dim first) { return mask.part(0, first, batch).reshape({batch, Dim(1), Dim(1), Dim(1)}); };
  if (mask.rank() == 1 && mask.dim(0) == batch) return filtered(j < column(Dim(0)), filter);
  if (mask.rank() == 1 && mask.dim(0) == batch * Dim(2))
    return filtered(both(j < column(Dim(0)), j >= column(batch)), filter);
  if (mask.rank() == 2 && mask.dim(0) == batch && w.demandEqual(mask.dim(1), keys))
    return filtered(mask.reshape({batch, Dim(1), Dim(1), keys}) > 0.0, filter);
  if (mask.rank() == 3 && mask.dim(0) == batch && mask.dim(1) == queries && mask.dim(2) == keys)
    return filtered(mask.reshape({batch, Dim(1), queries, keys}) > 0.0, filter);
  return s.fail("a key mask {0} for {1} sequences of {2} queries and {3} keys is not supported", mask.typeText(),
                batch.str(), queries.str(), keys.str());
}

struct Form {
  Term keyMask, bias; // either may be empty
  bool causal = false;
  double filter = -10000, scale = 0; // 0: 1/sqrt(d)
};

Form formOf(NodeSite &s, unsigned mask, unsigned bias) {
  Form f;
  f.keyMask = s.optionalIn(mask), f.bias = s.optionalIn(bias);
  f.causal = s.integer("unidirectional", 0) != 0;
  f.filter = s.real("mask_filter_value", -10000), f.scale = s.real("scale", 0);
  return f;
}

// softmax(scale * q k' + masks) v as [B, S, N*d]; everything between in f32.
Term attended(NodeSite &s, const Heads &h, const Form &f) {
  if (s.failed()) return {};
  Writer &w = s.writer();
  Dim queries = h.q.dim(2), keys = h.k.dim(2), d = h.q.dim(3);
  if (!d.isConstant() || d.is(0)) return s.fail("the head size {0} must be a number above 0", d.str());
  if (h.k.dim(3) != d || h.k.dim(1) != h.q.dim(1) || h.v.dim(1) != h.q.dim(1) || h.v.dim(2) != keys)
    return s.fail("queries {0}, keys {1} and values {2} do not fit", h.q.typeText(), h.k.typeText(), h.v.typeText());
  double scale = f.scale != 0 ? f.scale : 1 / std::sqrt(static_cast<double>(d.value()));
  DType dtype = h.q.dtype();
  Term bias = keyBias(s, f.keyMask, h, f.filter);
  if (f.causal) {
    Term i = w.iota({Dim(1), Dim(1), queries, Dim(1)}, 2) + w.extent(h.past, DType::i64),
         j = w.iota({Dim(1), Dim(1), Dim(1), keys}, 3);
    Term lowest = w.constant(std::numeric_limits<float>::lowest(), DType::f32), zero = w.constant(0, DType::f32);
    bias = select(j <= i, bias ? bias : zero, lowest);
  }
  Term scores = w.op("matmul", {h.q.cast(DType::f32) * scale, h.k.cast(DType::f32)}, {{"trans_b", true}});
  Shape shape = scores.shape();
  if (f.bias) {
    auto together = ir::broadcastShapes({shape, f.bias.shape()});
    if (f.bias.rank() != 4 || !together || *together != shape)
      return s.fail("attention_bias {0} does not broadcast to the scores {1}", f.bias.typeText(), scores.typeText());
    scores = scores + f.bias.cast(DType::f32);
  }
  if (bias) scores = scores + bias;
  Term y = w.op("matmul", {scores.apply("softmax"), h.v.cast(DType::f32)}).cast(dtype);
  return headsLast(y);
}

// Elements [first, first + count) of a bias, or x as it is.
Term withBias(Term x, Term bias, const Dim &first, const Dim &count) {
  return bias ? x + bias.part(0, first, count) : x;
}

// Heads of q, k and v by weights of all three in one.
Heads projected(NodeSite &s, Term x, Term weights, Term bias, int64_t heads) {
  std::vector<int64_t> listed = s.list("qkv_hidden_sizes");
  if (s.failed()) return {};
  if (x.rank() != 3 || weights.rank() != 2 || !weights.dim(1).isConstant())
    return s.fail("needs [B, S, D] and weights [D, 3*N*d], is given {0} and {1}", x.typeText(), weights.typeText()),
           Heads();
  int64_t width = weights.dim(1).value();
  if (listed.empty()) listed.assign(3, width / 3);
  if (listed.size() != 3 || listed[0] + listed[1] + listed[2] != width || listed[0] != listed[1] || listed[0] <= 0 ||
      listed[2] <= 0)
    return s.fail("weights {0} are not those of queries, keys and values", weights.typeText()), Heads();
  if (bias && (bias.rank() != 1 || bias.dim(0) != weights.dim(1)))
    return s.fail("the bias {0} does not fit weights {1}", bias.typeText(), weights.typeText()), Heads();
  Term all = s.writer().op("matmul", {x, weights});
  if (bias) all = all + bias;
  Heads h;
  h.q = headsFirst(s, all.part(2, Dim(0), Dim(listed[0])), heads);
  h.k = headsFirst(s, all.part(2, Dim(listed[0]), Dim(listed[1])), heads);
  h.v = headsFirst(s, all.part(2, Dim(listed[0] + listed[1]), Dim(listed[2])), heads);
  return h;
}

// Attention of heads behind those of a past; past (input `pastInput`) and present as [2, B, N, T, d].
void attendWithPast(NodeSite &s, Heads h, const Form &f, unsigned pastInput) {
  if (Term past = s.optionalIn(pastInput)) {
    if (past.rank() != 5 || !past.dim(0).is(2))
      return void(s.fail("past must be [2, B, N, P, d], is {0}", past.typeText()));
    Shape one{past.dim(1), past.dim(2), past.dim(3), past.dim(4)};
    h.past = past.dim(3);
    h.k = s.writer().concat({past.part(0, Dim(0), Dim(1)).reshape(one), h.k}, 2);
    h.v = s.writer().concat({past.part(0, Dim(1), Dim(1)).reshape(one), h.v}, 2);
  }
  s.out(0, attended(s, h, f));
  if (!s.wants(1) || s.failed()) return;
  auto stacked = [](Term t) { return t.reshape({Dim(1), t.dim(0), t.dim(1), t.dim(2), t.dim(3)}); };
  s.out(1, s.writer().concat({stacked(h.k), stacked(h.v)}, 0));
}

void refuseSharedCache(NodeSite &s) {
  if (s.integer("do_rotary", 0) != 0) s.fail("attribute 'do_rotary' is not supported");
  if (s.integer("past_present_share_buffer", 0) != 0) s.fail("attribute 'past_present_share_buffer' is not supported");
}

void attentionMicrosoft(NodeSite &s) {
  Term x = s.in(0), weights = s.in(1), bias = s.optionalIn(2);
  Form f = formOf(s, 3, 5);
  refuseSharedCache(s);
  if (s.has(6)) s.fail("a cache that is shared with the past (input 6, past_sequence_length) is not supported");
  if (s.integer("rotary_embedding_dim", 0) != 0) s.fail("attribute 'rotary_embedding_dim' is not supported");
  attendWithPast(s, projected(s, x, weights, bias, s.integer("num_heads", 0)), f, 4);
}

// Input x (or weights x) of 8 bits as numbers, by a scale and a zero point of all of it or of each column.
Term dequantized(NodeSite &s, unsigned input, unsigned scale, unsigned zero) {
  Term x = s.in(input), by = s.in(scale), z = s.optionalIn(zero);
  if (!x || !by) return {};
  auto fits = [&](Term t) { return t.rank() == 0 || (t.rank() == 1 && (t.dim(0).is(1) || t.dim(0) == x.dim(-1))); };
  if (!fits(by) || (z && (!fits(z) || z.dtype() != x.dtype())))
    return s.fail("the scale {0} or the zero point {1} does not fit {2}", by.typeText(), z.typeText(), x.typeText());
  Term y = x.cast(DType::f32);
  if (z) y = y - z.cast(DType::f32);
  return (y * by.cast(DType::f32)).cast(by.dtype());
}

// The same with input and weights of 8 bits.
void quantizedAttention(NodeSite &s) {
  Term x = dequantized(s, 0, 3, 6), weights = dequantized(s, 1, 4, 7), bias = s.in(2);
  if (s.type(3).elements() != Dim(1)) s.fail("the input has one scale, not {0}", s.type(3).str());
  Form f;
  f.keyMask = s.optionalIn(5);
  f.causal = s.flag("unidirectional", false);
  f.filter = s.real("mask_filter_value", -10000), f.scale = s.real("scale", 0);
  refuseSharedCache(s);
  attendWithPast(s, projected(s, x, weights, bias, s.integer("num_heads", 0)), f, 8);
}

// Tokens of all sequences one after the other, [T, D], without padding: a token sees those of its own sequence, which
// are between two of the bounds (input 4). Where they stand with padding (input 3) does not matter.
void packedAttention(NodeSite &s) {
  Term x = s.in(0), weights = s.in(1), bias = s.in(2), bounds = s.in(4);
  s.has(3);
  int64_t heads = s.integer("num_heads", 0);
  Form f;
  f.scale = s.real("scale", 0);
  if (s.failed()) return;
  if (x.rank() != 2 || bounds.rank() != 1)
    return void(s.fail("needs tokens [T, D] and bounds [B + 1], has {0} and {1}", x.typeText(), bounds.typeText()));
  Dim tokens = x.dim(0);
  Heads h = projected(s, x.reshape({Dim(1), tokens, x.dim(1)}), weights, bias, heads);
  // The number of its sequence: how many bounds are not behind it.
  Term isBehind = bounds.cast(DType::i64).reshape({Dim(1), bounds.dim(0)}) <= s.writer().iota({tokens, Dim(1)}, 0);
  Term sequence = isBehind.cast(DType::i64).reduce("sum", {1}, false);
  Term isSame =
      sequence.reshape({Dim(1), Dim(1), tokens, Dim(1)}) == sequence.reshape({Dim(1), Dim(1), Dim(1), tokens});
  f.bias = zeroOrInf(isSame, DType::f32);
  Term y = attended(s, h, f);
  s.out(0, y.reshape({tokens, y.dim(-1)}));
}

// Part `i` of dim 3 of [B, T, N, parts, d], as heads.
Term unpacked(Term x, int64_t i) {
  return x.part(3, Dim(i), Dim(1)).reshape({x.dim(0), x.dim(1), x.dim(2), x.dim(4)}).transpose({0, 2, 1, 3});
}

// Queries, keys and values are apart, or packed as [B, S, N, 3, d], or keys and values as [B, L, N, 2, d]; keys and
// values of another sequence come as heads [B, N, L, d].
void multiHeadAttention(NodeSite &s) {
  Term q = s.in(0), k = s.optionalIn(1), v = s.optionalIn(2), bias = s.optionalIn(3);
  int64_t heads = s.integer("num_heads", 0);
  Form f = formOf(s, 4, 5);
  Term pastKey = s.optionalIn(6), pastValue = s.optionalIn(7);
  if (s.has(8) || s.has(9)) s.fail("a cache that is shared with the past (inputs 8 and 9) is not supported");
  if (s.wants(3)) s.fail("result 3, the scores, is not supported");
  if (s.failed()) return;
  bool isPacked = q.rank() == 5, isPackedPair = k.rank() == 5, areHeads = k.rank() == 4;
  if (static_cast<bool>(pastKey) != static_cast<bool>(pastValue))
    return void(s.fail("past_key and past_value must be given together"));
  if (bias && (isPacked || isPackedPair)) return void(s.fail("a bias on packed inputs is not supported"));
  Heads h;
  if (isPacked) {
    if (k || v || !q.dim(3).is(3) || !q.dim(2).is(heads))
      return void(s.fail("packed queries, keys and values must be [B, S, {0}, 3, d], are {1}", heads, q.typeText()));
    h = {unpacked(q, 0), unpacked(q, 1), unpacked(q, 2), Dim(0)};
  } else {
    Dim width = q.dim(-1);
    if (q.rank() != 3 || !k) return void(s.fail("needs queries [B, S, N*d] and keys, has {0}", q.typeText()));
    if (bias && bias.rank() != 1) return void(s.fail("the bias must be a vector, is {0}", bias.typeText()));
    h.q = headsFirst(s, withBias(q, bias, Dim(0), width), heads);
    if (isPackedPair) {
      if (v || !k.dim(3).is(2))
        return void(s.fail("packed keys and values must be [B, L, N, 2, d]: {0}", k.typeText()));
      h.k = unpacked(k, 0), h.v = unpacked(k, 1);
    } else if (!v || v.rank() != k.rank()) {
      return void(s.fail("keys {0} and values {1} must be of one form", k.typeText(), v.typeText()));
    } else if (areHeads) { // the bias of keys and values is in them already
      h.k = k, h.v = v;
    } else {
      h.k = headsFirst(s, withBias(k, bias, width, width), heads);
      h.v = headsFirst(s, withBias(v, bias, width * Dim(2), v.dim(-1)), heads);
    }
  }
  if (pastKey) {
    if (areHeads) return void(s.fail("a past with keys that are heads already is not supported"));
    h.past = pastKey.dim(2);
    h.k = s.writer().concat({pastKey, h.k}, 2), h.v = s.writer().concat({pastValue, h.v}, 2);
  }
  s.out(0, attended(s, h, f));
  if (s.wants(1)) s.out(1, h.k);
  if (s.wants(2)) s.out(2, h.v);
}

} // namespace

llvm::ArrayRef<OpEntry> fusedAttentionOperators() {
  static const std::vector<OpEntry> entries = {
      {"com.microsoft", "Attention", 1, attentionMicrosoft},
      {"com.microsoft", "QAttention", 1, quantizedAttention},
      {"com.microsoft", "PackedAttention", 1, packedAttention},
      {"com.microsoft", "MultiHeadAttention", 1, multiHeadAttention},
  };
  return entries;
}

} // namespace fusor::onnx
