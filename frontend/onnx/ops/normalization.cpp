// Softmax and the norms.
#include "frontend/onnx/ops/common.h"

namespace fusor::onnx {

using ir::Dim, ir::DType, ir::Shape;

namespace {

// Before version 13 over everything from `axis` (default 1) on together, then along `axis` (default -1) alone.
void soft(NodeSite &s, llvm::StringRef op) {
  Term x = s.in(0);
  bool flattens = s.version() < 13;
  int64_t given = s.integer("axis", flattens ? 1 : -1), rank = x.rank();
  if (flattens && given == rank && rank > 0) { // nothing is left to sum over: every row has one element
    Term y = x.reshape({ir::product(x.shape()), Dim(1)}).apply(op);
    return s.out(0, y.reshape(x.shape()));
  }
  unsigned axis = s.axis(given, x.rank());
  if (s.failed()) return;
  if (!flattens) return s.out(0, x.apply(op, {{"axis", static_cast<int64_t>(axis)}}));
  Term y = x.reshape({product(x.shape(), 0, axis), product(x.shape(), axis, x.rank())}).apply(op);
  s.out(0, y.reshape(x.shape()));
}
void softmax(NodeSite &s) { soft(s, "softmax"); }
void logSoftmax(NodeSite &s) { soft(s, "log_softmax"); }

// x with everything from `axis` on as one dim.
Term rowsFrom(Term x, unsigned axis) {
  Shape shape = x.shape();
  shape.truncate(axis);
  shape.push_back(product(x.shape(), axis, x.rank()));
  return x.reshape(std::move(shape));
}

// A scale or bias as one row of the dims from `axis` on; empty where it is not given. It must not enlarge them.
std::optional<Term> vectorOf(NodeSite &s, unsigned input, Term x, unsigned axis) {
  Term v = s.optionalIn(input);
  if (!v) return v;
  Shape all = x.shape(), tail(all.begin() + axis, all.end());
  while (v.rank() > tail.size() && v.dim(0).is(1)) { // leading 1s
    Shape shape = v.shape();
    shape.erase(shape.begin());
    v = v.reshape(std::move(shape));
    if (!v) return std::nullopt;
  }
  auto together = ir::broadcastShapes({v.shape(), tail});
  if (!together || *together != tail)
    return s.fail("{0} of input {1} does not broadcast to the normalised dims [{2}]", v.typeText(), input,
                  ir::str(llvm::ArrayRef<Dim>(tail))),
           std::nullopt;
  return v.broadcast(tail).reshape({ir::product(tail)});
}

// A statistic of rows in the shape of x with 1s from `axis` on.
Term statistic(Term x, unsigned axis, Term t) {
  Shape shape = x.shape();
  for (unsigned i = axis; i < shape.size(); ++i) shape[i] = Dim(1);
  return t.reshape(std::move(shape)).cast(DType::f32);
}

void layerNormalization(NodeSite &s) {
  Term x = s.in(0);
  unsigned axis = s.axis(s.integer("axis", -1), x.rank());
  double eps = s.real("epsilon", 1e-5);
  s.ignore("stash_type"); // statistics are always in f32
  if (!s.has(1)) s.fail("input 1, the scale, is missing");
  if (s.failed()) return;
  auto scale = vectorOf(s, 1, x, axis), bias = vectorOf(s, 2, x, axis);
  if (!scale || !bias) return;
  auto y = s.writer().ops("layer_norm", {rowsFrom(x, axis), *scale, *bias}, {{"eps", eps}}, 3);
  s.out(0, y[0].reshape(x.shape()));
  if (s.wants(1)) s.out(1, statistic(x, axis, y[1]));
  if (s.wants(2)) s.out(2, statistic(x, axis, y[2]));
}

void rmsNormalization(NodeSite &s) {
  Term x = s.in(0);
  unsigned axis = s.axis(s.integer("axis", -1), x.rank());
  double eps = s.real("epsilon", 1e-5);
  s.ignore("stash_type");
  if (s.failed()) return;
  auto scale = vectorOf(s, 1, x, axis);
  if (!scale) return;
  auto y = s.writer().ops("rms_norm", {rowsFrom(x, axis), *scale}, {{"eps", eps}}, 2);
  s.out(0, y[0].reshape(x.shape()));
  if (s.wants(1)) s.out(1, statistic(x, axis, y[1]));
}

// Mean 0 and variance 1 of rows, in f32.
Term normalized(NodeSite &s, Term x, double eps) {
  return s.writer().ops("layer_norm", {x.cast(wide(x.dtype()))}, {{"eps", eps}}, 3)[0];
}

// Per channel (dim 1) factors of a tensor of `rank` dims.
Term perChannel(Term v, unsigned rank) {
  if (!v) return v;
  Shape shape(rank, Dim(1));
  shape[1] = v.dim(0);
  return v.reshape(std::move(shape)).cast(wide(v.dtype()));
}

// Every (sample, channel) by itself.
void instanceNormalization(NodeSite &s) {
  Term x = s.in(0), scale = s.in(1), bias = s.in(2);
  double eps = s.real("epsilon", 1e-5);
  s.ignore("consumed_inputs");
  if (s.failed()) return;
  if (x.rank() < 3) return void(s.fail("needs [N, C, D1, ...], is given {0}", x.typeText()));
  Term y = normalized(s, rowsFrom(x, 2), eps).reshape(x.shape());
  s.out(0, (y * perChannel(scale, x.rank()) + perChannel(bias, x.rank())).cast(x.dtype()));
}

// Every (sample, group of channels); scale and bias of a group before version 21, of a channel since.
void groupNormalization(NodeSite &s) {
  Term x = s.in(0), scale = s.in(1), bias = s.in(2);
  double eps = s.real("epsilon", 1e-5);
  int64_t groups = s.integer("num_groups", 0);
  s.ignore("stash_type");
  if (s.failed()) return;
  auto each = groups > 0 && x.rank() >= 2 ? x.dim(1).divide(Dim(groups)) : std::nullopt;
  if (!each) return void(s.fail("{0} does not divide into {1} groups of channels", x.typeText(), groups));
  Dim rest = product(x.shape(), 2, x.rank());
  Term y = normalized(s, x.reshape({x.dim(0), Dim(groups), *each * rest}), eps);
  auto spread = [&](Term v) {
    Dim n = s.version() < 21 ? Dim(groups) : x.dim(1);
    if (v.rank() != 1 || v.dim(0) != n) return s.fail("scale and bias must be [{0}], found {1}", n.str(), v.typeText());
    v = v.cast(wide(v.dtype()));
    if (s.version() < 21) v = v.reshape({Dim(groups), Dim(1)}).broadcast({Dim(groups), *each}).reshape({x.dim(1)});
    return v.reshape({x.dim(1), Dim(1)});
  };
  y = y.reshape({x.dim(0), x.dim(1), rest}) * spread(scale) + spread(bias);
  s.out(0, y.reshape(x.shape()).cast(x.dtype()));
}

// com.microsoft: channels last, or in dim 1; with the sum of x, a skip and a bias as a second result.
void groupNorm(NodeSite &s, bool hasSkip) {
  Term x = s.in(0), scale = s.in(1), shift = s.in(2);
  double eps = s.real("epsilon", 1e-5);
  int64_t groups = s.integer("groups", 0);
  bool activates = s.flag("activation", false), isLast = s.flag("channels_last", true);
  if (s.failed()) return;
  if (x.rank() != 4) return void(s.fail("needs 4 dims, is given {0}", x.typeText()));
  const unsigned channelDim = isLast ? 3 : 1;
  const Dim n = x.dim(0), channels = x.dim(channelDim), rest = ir::product(x.shape());
  auto each = groups > 0 ? channels.divide(Dim(groups)) : std::nullopt;
  if (!each || each->is(0)) return void(s.fail("{0} channels do not divide into {1} groups", channels.str(), groups));
  Shape perChannel(4, Dim(1)), perSample = perChannel;
  perChannel[channelDim] = perSample[channelDim] = channels, perSample[0] = n;
  Shape own = x.shape();
  if (hasSkip) {
    Term skip = s.in(3), bias = s.optionalIn(4);
    if (!skip) return;
    if (skip.shape() != own && ir::product(skip.shape()) != n * channels)
      return void(s.fail("the skip {0} does not fit {1}", skip.typeText(), x.typeText()));
    x = x + (skip.shape() == own ? skip : skip.reshape(perSample));
    if (bias) x = x + bias.reshape(perChannel);
    if (s.wants(1)) s.out(1, x);
  }
  Term y = x.cast(wide(x.dtype()));
  if (isLast) y = y.transpose({0, 3, 1, 2});
  Shape inOrder = y.shape();
  auto size = s.failed() ? std::nullopt : rest.divide(n * Dim(groups));
  if (!size) return;
  y = normalized(s, y.reshape({n, Dim(groups), *size}), eps).reshape(inOrder);
  if (isLast) y = y.transpose({0, 2, 3, 1});
  y = y * scale.cast(y.dtype()).reshape(perChannel) + shift.cast(y.dtype()).reshape(perChannel);
  s.out(0, (activates ? y.apply("silu") : y).cast(x.dtype()));
}
void groupNormMicrosoft(NodeSite &s) { groupNorm(s, false); }
void skipGroupNorm(NodeSite &s) { groupNorm(s, true); }

void batchNormalization(NodeSite &s) {
  Term x = s.in(0);
  double eps = s.real("epsilon", 1e-5);
  for (const char *name : {"momentum", "consumed_inputs"}) s.ignore(name);
  bool training =
      s.version() >= 14 ? s.integer("training_mode", 0) != 0 : s.version() < 7 && s.integer("is_test", 0) == 0;
  if (training || (s.version() < 9 && s.integer("spatial", 1) == 0)) s.fail("only the inference form is supported");
  for (unsigned i = 1; i < s.outputCount(); ++i)
    if (s.wants(i)) s.fail("only the first result is supported");
  Term factors[4]; // scale, bias, mean, variance
  for (unsigned i = 0; i < 4; ++i) {
    Term v = s.in(i + 1);
    if (!s.failed() && (x.rank() < 2 || v.rank() != 1)) s.fail("needs [N, C, ...] and factors [C]");
    if (s.failed()) return;
    factors[i] = perChannel(v, x.rank());
  }
  Term y = (x.cast(wide(x.dtype())) - factors[2]) * (factors[3] + eps).apply("rsqrt") * factors[0] + factors[1];
  s.out(0, y.cast(x.dtype()));
}

void lpNormalization(NodeSite &s) {
  Term x = s.in(0);
  int64_t axis = s.axis(s.integer("axis", -1), x.rank()), p = s.integer("p", 2);
  if (s.failed()) return;
  if (p != 1 && p != 2) return void(s.fail("attribute 'p' must be 1 or 2, is {0}", p));
  Term w = x.cast(wide(x.dtype()));
  Term size = p == 1 ? w.apply("abs").reduce("sum", {axis}) : (w * w).reduce("sum", {axis}).apply("sqrt");
  Term zero = size ? s.writer().constant(0, size.dtype()) : Term();
  s.out(0, select(size == 0.0, zero, w / size).cast(x.dtype()));
}

// com.microsoft: y = norm(x + skip + bias), and the sum itself as the fourth result.
void skipNormalization(NodeSite &s, bool simplified) {
  Term x = s.in(0), skip = s.in(1);
  double eps = s.real("epsilon", 1e-12);
  Term sum = x + skip;
  if (Term bias = s.optionalIn(simplified ? 3 : 4)) sum = sum + bias;
  if (!sum) return;
  if (sum.shape() != x.shape()) return void(s.fail("skip {0} enlarges the input {1}", skip.typeText(), x.typeText()));
  unsigned axis = sum.rank() - 1;
  auto scale = vectorOf(s, 2, sum, axis);
  auto bias = simplified ? std::optional<Term>(Term()) : vectorOf(s, 3, sum, axis);
  if (!scale || !bias) return;
  Term rows = rowsFrom(sum, axis);
  llvm::SmallVector<Term, 3> y = simplified ? s.writer().ops("rms_norm", {rows, *scale}, {{"eps", eps}}, 2)
                                            : s.writer().ops("layer_norm", {rows, *scale, *bias}, {{"eps", eps}}, 3);
  s.out(0, y[0]);
  if (!simplified && s.wants(1)) s.out(1, y[1]);
  if (s.wants(2)) s.out(2, y[simplified ? 1 : 2]);
  if (simplified && s.wants(1)) s.fail("the mean of a norm without one is asked for");
  if (s.wants(3)) s.out(3, sum);
}
void skipLayerNormalization(NodeSite &s) { skipNormalization(s, false); }
void skipSimplifiedLayerNormalization(NodeSite &s) { skipNormalization(s, true); }

// com.microsoft: the sum of word, position and segment rows, normalised.
void embedLayerNormalization(NodeSite &s) {
  Term ids = s.in(0), segments = s.optionalIn(1), words = s.in(2), positions = s.in(3), kinds = s.optionalIn(4);
  double eps = s.real("epsilon", 1e-12);
  s.ignore("mask_index_type");
  bool hasMask = s.has(7);
  s.checkIndices(0, words.dim(0));
  if (segments && kinds) s.checkIndices(1, kinds.dim(0));
  s.checkIndices(8, positions.dim(0));
  if (s.failed()) return;
  Term positionIds = s.optionalIn(8);
  ir::Attrs rows{{"axis", int64_t(0)}};
  Term at = positionIds ? s.writer().op("gather", {positions, positionIds}, rows)
                        : positions.part(0, Dim(0),
                                         s.writer().demandAtLeast(positions.dim(0) - ids.dim(1), 0) ? ids.dim(1)
                                                                                                    : positions.dim(0));
  Term sum = s.writer().op("gather", {words, ids}, rows) + at;
  if (segments && kinds) sum = sum + s.writer().op("gather", {kinds, segments}, rows);
  if (!sum) return;
  auto scale = vectorOf(s, 5, sum, sum.rank() - 1), bias = vectorOf(s, 6, sum, sum.rank() - 1);
  if (!scale || !bias) return;
  s.out(0, s.writer().ops("layer_norm", {sum, *scale, *bias}, {{"eps", eps}}, 3)[0]);
  if (s.wants(1)) { // how many tokens are not padding
    Term mask = hasMask ? s.in(7) : Term();
    s.out(1, mask ? mask.cast(DType::i32).reduce("sum", {1}, false)
                  : s.writer().constant(0, DType::i32).broadcast({ids.dim(0)}));
  }
  if (s.wants(2)) s.out(2, sum);
}

} // namespace

llvm::ArrayRef<OpEntry> normalizationOperators() {
  static const std::vector<OpEntry> entries = {
      {"", "Softmax", 1, softmax},
      {"", "LogSoftmax", 1, logSoftmax},
      {"", "LayerNormalization", 1, layerNormalization}, // some files use it below version 17, where it was defined
      {"", "SimplifiedLayerNormalization", 1, rmsNormalization},
      {"", "RMSNormalization", 23, rmsNormalization},
      {"", "InstanceNormalization", 1, instanceNormalization},
      {"", "GroupNormalization", 18, groupNormalization},
      {"", "BatchNormalization", 1, batchNormalization},
      {"", "LpNormalization", 1, lpNormalization},
      {"com.microsoft", "LayerNormalization", 1, layerNormalization},
      {"com.microsoft", "SimplifiedLayerNormalization", 1, rmsNormalization},
      {"com.microsoft", "SkipLayerNormalization", 1, skipLayerNormalization},
      {"com.microsoft", "SkipSimplifiedLayerNormalization", 1, skipSimplifiedLayerNormalization},
      {"com.microsoft", "GroupNorm", 1, groupNormMicrosoft},
      {"com.microsoft", "SkipGroupNorm", 1, skipGroupNorm},
      {"com.microsoft", "EmbedLayerNormalization", 1, embedLayerNormalization},
  };
  return entries;
}

} // namespace fusor::onnx
