// com.microsoft's GroupQueryAttention: causal attention behind a cache, [B, Nkv, P, d], of sequences that need not be
// equally long. Of the past of sequence b the first seqlens_k[b] + 1 - S places count; new keys follow there.
//
//     place in the cache     0 .. past[b] - 1     past[b] .. past[b] + S - 1      (the results)
//     place in k and v       0 .. past[b] - 1     P .. P + S - 1                  (what attention is written on)
//
// A softmax does not ask for the order of keys. So keys are past and new ones as they are, one behind the other, of
// which places from past[b] to P - 1 are masked: a form with a causal and a key mask, that passes lift as one
// attention.
#include "frontend/onnx/limits.h"
#include "frontend/onnx/ops/heads.h"
#include "frontend/onnx/ops/places.h"
#include <cmath>

namespace fusor::onnx {

using ir::Dim, ir::DType, ir::Shape;

namespace {

/// Every one [B, N, T, d]; k and v of the new tokens.
struct Input {
  Term q, k, v;
  Dim past = Dim(0); // places in the cache
  Term pastOfEach;   // i64[B, 1]; empty where each sequence has all of them
};

// Queries, keys and values are apart, or one behind the other in the last dim.
Input inputOf(NodeSite &s, int64_t heads, int64_t kvHeads) {
  Term q = s.in(0), k = s.optionalIn(1), v = s.optionalIn(2);
  if (s.failed()) return {};
  if (heads <= 0 || kvHeads <= 0 || heads > kMaxSymbol || heads % kvHeads)
    return s.fail("{0} heads of queries are no multiple of {1} of keys", heads, kvHeads), Input();
  if (static_cast<bool>(k) != static_cast<bool>(v)) return s.fail("key and value must be given together"), Input();
  if (!k) {
    auto d = q.rank() == 3 ? q.dim(2).divide(Dim(heads + 2 * kvHeads)) : std::nullopt;
    if (!d) return s.fail("{0} is no row of {1} heads and twice {2}", q.typeText(), heads, kvHeads), Input();
    Term all = q;
    q = all.part(2, Dim(0), *d * Dim(heads));
    k = all.part(2, *d * Dim(heads), *d * Dim(kvHeads));
    v = all.part(2, *d * Dim(heads + kvHeads), *d * Dim(kvHeads));
  }
  Input in;
  in.q = headsFirst(s, q, heads), in.k = headsFirst(s, k, kvHeads), in.v = headsFirst(s, v, kvHeads);
  if (s.failed()) return in;
  if (in.k.shape() != in.v.shape() || in.k.dim(0) != in.q.dim(0) || in.k.dim(2) != in.q.dim(2) ||
      in.k.dim(3) != in.q.dim(3) || !in.q.dim(3).isConstant() || in.q.dim(3).is(0))
    s.fail("queries {0}, keys {1} and values {2} do not fit", q.typeText(), k.typeText(), v.typeText());
  return in;
}

// What is known of the past: that it is not longer than its sizes say, and how much of it belongs to each sequence.
void readPast(NodeSite &s, Input &in, Term pastKey, Term pastValue, Term lengths) {
  Writer &w = s.writer();
  Dim batch = in.q.dim(0), tokens = in.q.dim(2);
  if (static_cast<bool>(pastKey) != static_cast<bool>(pastValue))
    return void(s.fail("past_key and past_value must be given together"));
  if (!s.has(6)) return void(s.fail("input 6, total_sequence_length, is missing"));
  if (lengths.dtype() != DType::i32 || lengths.rank() == 0 || ir::product(lengths.shape()) != batch)
    return void(s.fail("seqlens_k must be i32[{0}], is {1}", batch.str(), lengths.typeText()));
  if (!pastKey) return; // a prompt: all of it is new
  if (pastKey.shape() != pastValue.shape() || pastKey.rank() != 4 || pastKey.dim(0) != batch ||
      pastKey.dim(1) != in.k.dim(1) || pastKey.dim(3) != in.k.dim(3))
    return void(s.fail("the past {0} and {1} does not fit keys {2}", pastKey.typeText(), pastValue.typeText(),
                       in.k.typeText()));
  in.past = pastKey.dim(2);
  auto total = s.dims(6, "total_sequence_length");
  if (!total) return;
  if (total->size() != 1 || !w.demandEqual(total->front(), in.past + tokens))
    return void(s.fail("a cache that is shared with the past is not supported: total_sequence_length is {0}, with {1} "
                       "in the past and {2} new",
                       total->empty() ? "nothing" : total->front().str(), in.past.str(), tokens.str()));
  if (batch.is(1)) return; // the longest sequence is the only one
  Term length = lengths.reshape({batch, Dim(1)}).cast(DType::i64) + 1.0 - w.extent(tokens, DType::i64);
  length = w.op("max", {length, w.constant(0, DType::i64)}); // a prompt may be shorter than its padding
  in.pastOfEach = w.op("min", {length, w.extent(in.past, DType::i64)});
}

// The places of new tokens in their sequences, i64[B or 1, S]; empty where they are the past's length and on.
Term placesOfTokens(NodeSite &s, const Input &in) {
  Writer &w = s.writer();
  Term token = w.iota({Dim(1), in.q.dim(2)}, 1), ids = s.optionalIn(9);
  if (!ids) return in.pastOfEach ? token + in.pastOfEach : Term();
  if (ids.rank() != 2 || ids.dim(0) != in.q.dim(0) || ids.dim(1) != in.q.dim(2))
    return s.fail("position_ids must be [{0}, {1}], are {2}", in.q.dim(0).str(), in.q.dim(2).str(), ids.typeText());
  // Of a prompt only the first id is read.
  Term first = ids.part(0, Dim(0), Dim(1)).part(1, Dim(0), Dim(1)) + token;
  return in.past.is(0) ? first : select(w.extent(in.past, DType::i64) == 0.0, first, ids);
}

void rotate(NodeSite &s, Input &in) {
  bool interleaved = s.flag("rotary_interleaved", false);
  Term cos = s.in(7), sin = s.in(8), places = placesOfTokens(s, in);
  if (s.failed()) return;
  Dim r = cos.dim(-1) * Dim(2);
  if (cos.rank() != 2 || cos.shape() != sin.shape() || !s.writer().demandAtLeast(in.q.dim(3) - r, 0))
    return void(
        s.fail("caches {0} and {1} do not fit heads of {2}", cos.typeText(), sin.typeText(), in.q.dim(3).str()));
  const Dim tokens = in.q.dim(2);
  auto rows = [&](Term cache) {
    if (!places) return cache.part(0, in.past, tokens).reshape({Dim(1), Dim(1), tokens, cache.dim(1)});
    Term t = s.writer().op("gather", {cache, places}, {{"axis", int64_t(0)}});
    return t.reshape({t.dim(0), Dim(1), t.dim(1), t.dim(2)});
  };
  cos = rows(cos), sin = rows(sin);
  in.q = turned(in.q, cos, sin, r, interleaved), in.k = turned(in.k, cos, sin, r, interleaved);
}

// Keys or values as the results have them: new ones right behind the past of their sequence, then zeros.
Term present(NodeSite &s, const Input &in, Term all) {
  if (!in.pastOfEach || !all) return all;
  Writer &w = s.writer();
  Shape each{all.dim(0), Dim(1), Dim(1), Dim(1)}, along{Dim(1), Dim(1), all.dim(2), Dim(1)};
  Term past = in.pastOfEach.reshape(each), place = w.iota(along, 2);
  Term from = select(place < past, place, place + (w.extent(in.past, DType::i64) - past)).broadcast(all.shape());
  Term isThere = from < w.extent(all.dim(2), DType::i64);
  Term places = placesOf(s, all, select(isThere, from, w.constant(0, DType::i64)), 2);
  Term rows = w.op("gather", {all.reshape({ir::product(all.shape())}), places}, {{"axis", int64_t(0)}});
  return select(isThere, rows, w.constant(0, all.dtype()));
}

// softmax with one more score in each row, `sink` of [N] or a number, that no value belongs to.
Term softmaxWithSink(NodeSite &s, Term scores, Term sink) {
  if (!scores || !sink) return {};
  if (sink.rank() == 1 && sink.dim(0) == scores.dim(1))
    sink = sink.reshape({Dim(1), sink.dim(0), Dim(1), Dim(1)});
  else if (sink.rank() != 0)
    return s.fail("head_sink must be [{0}], is {1}", scores.dim(1).str(), sink.typeText());
  Shape column = scores.shape();
  column.back() = Dim(1);
  Term all = s.writer().concat({scores, sink.cast(scores.dtype()).broadcast(std::move(column))}, 3);
  return all.apply("softmax").part(3, Dim(0), scores.dim(3));
}

// What a query sees as biases, each in a form that passes know.
llvm::SmallVector<Term, 3> masks(NodeSite &s, const Input &in, int64_t window, DType compute) {
  Writer &w = s.writer();
  Dim tokens = in.q.dim(2);
  Term i = w.iota({Dim(1), Dim(1), tokens, Dim(1)}, 2), j = w.iota({Dim(1), Dim(1), Dim(1), in.past + tokens}, 3);
  Term past = w.extent(in.past, DType::i64);
  llvm::SmallVector<Term, 3> found{zeroOrInf(j <= i + past, compute)};
  Term place = j, own = past; // of the key in its sequence; the tokens before the new ones
  if (in.pastOfEach) {
    own = in.pastOfEach.reshape({in.q.dim(0), Dim(1), Dim(1), Dim(1)});
    found.push_back(zeroOrInf(w.op("or", {j < own, j >= past}), compute));
    place = select(j < past, j, j - past + own);
  }
  if (window > 0) found.push_back(zeroOrInf(place > i + own - static_cast<double>(window), compute));
  return found;
}

void groupQueryAttention(NodeSite &s) {
  int64_t heads = s.integer("num_heads", 0), kvHeads = s.integer("kv_num_heads", 0);
  int64_t window = s.integer("local_window_size", -1);
  double scale = s.real("scale", 0), softcap = s.real("softcap", 0);
  int64_t smooth = s.integer("smooth_softmax", -1); // -1: as 0
  if (smooth < -1 || smooth > 1) s.fail("attribute 'smooth_softmax' is {0}", smooth);
  if (window == 0) s.fail("attribute 'local_window_size' is 0");
  if (s.integer("causal", 1) != 1) s.fail("attribute 'causal' = 0 is not supported");
  if (s.integer("sliding_window_cache", 0) != 0) s.fail("attribute 'sliding_window_cache' is not supported");
  if (s.integer("qk_output", 0) != 0 || s.wants(3)) s.fail("result 3, the scores, is not supported");
  for (const char *quantized : {"k_quant_type", "v_quant_type"})
    if (s.text(quantized, "NONE") != "NONE") s.fail("attribute '{0}' is not supported", quantized);
  s.ignore("kv_cache_bit_width"), s.ignore("qk_norm_epsilon"); // of what is refused

  Input in = inputOf(s, heads, kvHeads);
  Term pastKey = s.optionalIn(3), pastValue = s.optionalIn(4), lengths = s.in(5);
  if (s.failed()) return;
  readPast(s, in, pastKey, pastValue, lengths);
  if (s.failed()) return;
  if (s.flag("do_rotary", false)) {
    rotate(s, in);
  } else {
    for (unsigned i : {7u, 8u, 9u}) s.has(i); // not read then
    s.ignore("rotary_interleaved");
  }
  Writer &w = s.writer();
  Term k = pastKey ? w.concat({pastKey, in.k}, 2) : in.k, v = pastKey ? w.concat({pastValue, in.v}, 2) : in.v;
  if (s.wants(1)) s.out(1, present(s, in, k));
  if (s.wants(2)) s.out(2, present(s, in, v));

  DType dtype = in.q.dtype(), compute = wide(dtype);
  Dim group(heads / kvHeads);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(in.q.dim(3).value()));
  Term scores = w.op("matmul", {in.q.cast(compute) * scale, repeated(k, group).cast(compute)}, {{"trans_b", true}});
  if (softcap > 0) scores = (scores / softcap).apply("tanh") * softcap;
  if (Term bias = s.optionalIn(10)) {
    auto together = ir::broadcastShapes({scores.shape(), bias.shape()});
    if (in.pastOfEach) return void(s.fail("attention_bias behind a past of several sequences is not supported"));
    if (bias.rank() != 4 || !together || *together != scores.shape())
      return void(
          s.fail("attention_bias {0} does not broadcast to the scores {1}", bias.typeText(), scores.typeText()));
    scores = scores + bias.cast(compute);
  }
  for (Term mask : masks(s, in, window, compute)) scores = scores + mask;
  Term sink = s.optionalIn(11);
  if (!sink && smooth == 1) sink = w.constant(0, compute);
  Term p = sink ? softmaxWithSink(s, scores, sink) : scores.apply("softmax");
  s.out(0, headsLast(w.op("matmul", {p, repeated(v, group).cast(compute)})).cast(dtype));
}

} // namespace

llvm::ArrayRef<OpEntry> groupQueryAttentionOperators() {
  static const std::vector<OpEntry> entries = {{"com.microsoft", "GroupQueryAttention", 1, groupQueryAttention}};
  return entries;
}

} // namespace fusor::onnx
