// com.microsoft's GroupQueryAttention against loops over sequences of different lengths: with and without a past, in
// small ops, compiled, and lifted.
#include "tests/onnx/evaluate.h"
#include "tests/onnx/model_folder.h"
#include "gtest/gtest.h"
#include <cmath>

namespace fusor::tests {
namespace {

using ir::DType;

struct GroupQueryCase {
  const char *what;
  std::vector<int64_t> past; // of each sequence that is in the cache; the cache is as long as the longest
  int64_t tokens = 1;
  int64_t heads = 4, kvHeads = 2, d = 4;
  bool hasPast = true, isPacked = false, hasIds = false;
  int64_t rotary = 0; // how much of a head is rotated
  bool interleaved = false;
  int64_t window = -1;
  double softcap = 0, scale = 0;
  bool isSmooth = false, hasSink = false, hasBias = false;
  int64_t padding = 0; // of a prompt's shortest sequence

  int64_t batch() const { return static_cast<int64_t>(past.size()); }
  int64_t longest() const { return *std::max_element(past.begin(), past.end()); }
  int64_t total() const { return longest() + tokens; }
};

constexpr int64_t kPositions = 16;

struct Inputs {
  ir::RefTensor q, k, v, pastKey, pastValue, lengths, total, cos, sin, ids, bias, sink;

  explicit Inputs(const GroupQueryCase &c) {
    auto random = [&](std::vector<int64_t> shape, uint64_t seed) { return randomTensor(DType::f32, shape, seed); };
    q = random({c.batch(), c.tokens, c.heads * c.d}, 1);
    k = random({c.batch(), c.tokens, c.kvHeads * c.d}, 2), v = random({c.batch(), c.tokens, c.kvHeads * c.d}, 3);
    pastKey = random({c.batch(), c.kvHeads, c.longest(), c.d}, 4);
    pastValue = random({c.batch(), c.kvHeads, c.longest(), c.d}, 5);
    lengths = tensor(DType::i32, {c.batch()}, {}), ids = tensor(DType::i64, {c.batch(), c.tokens}, {});
    for (int64_t b = 0; b < c.batch(); ++b) {
      lengths.data.push_back(static_cast<double>(c.past[b] + c.tokens - 1 - (b == 0 ? c.padding : 0)));
      for (int64_t i = 0; i < c.tokens; ++i) ids.data.push_back(static_cast<double>(c.past[b] + i));
    }
    total = random({c.batch(), c.total()}, 6);
    cos = random({kPositions, c.rotary / 2}, 7), sin = random({kPositions, c.rotary / 2}, 8);
    bias = random({1, c.heads, c.tokens, c.total()}, 9), sink = random({c.heads}, 10);
  }
};

// --- loops

struct Wanted {
  Numbers y, key, value; // [B, S, N*d], [B, Nkv, P + S, d] with zeros behind each sequence
};

// The row of head h of token i, rotated by the angles of `place`.
Numbers row(const GroupQueryCase &c, const ir::RefTensor &x, int64_t heads, int64_t b, int64_t i, int64_t h,
            int64_t place, const Inputs *angles) {
  const double *from = x.data.data() + ((b * c.tokens + i) * heads + h) * c.d;
  Numbers y(from, from + c.d);
  const int64_t half = c.rotary / 2;
  for (int64_t e = 0; angles && e < half; ++e) {
    int64_t first = c.interleaved ? 2 * e : e, second = c.interleaved ? 2 * e + 1 : e + half;
    double cos = angles->cos.data[place * half + e], sin = angles->sin.data[place * half + e];
    y[first] = from[first] * cos - from[second] * sin;
    y[second] = from[second] * cos + from[first] * sin;
  }
  return y;
}

Wanted byLoops(const GroupQueryCase &c, const Inputs &in) {
  Wanted w;
  const int64_t all = c.total(), group = c.heads / c.kvHeads;
  w.y.assign(c.batch() * c.tokens * c.heads * c.d, 0);
  w.key.assign(c.batch() * c.kvHeads * all * c.d, 0), w.value = w.key;
  const double scale = c.scale != 0 ? c.scale : 1 / std::sqrt(static_cast<double>(c.d));
  for (int64_t b = 0; b < c.batch(); ++b) {
    const int64_t past = c.past[b];
    for (int64_t g = 0; g < c.kvHeads; ++g)
      for (int64_t j = 0; j < past + c.tokens; ++j) {
        Numbers key = j < past ? Numbers() : row(c, in.k, c.kvHeads, b, j - past, g, j, &in);
        Numbers value = j < past ? Numbers() : row(c, in.v, c.kvHeads, b, j - past, g, j, nullptr);
        for (int64_t e = 0; e < c.d; ++e) {
          int64_t to = ((b * c.kvHeads + g) * all + j) * c.d + e,
                  from = ((b * c.kvHeads + g) * c.longest() + j) * c.d + e;
          w.key[to] = j < past ? in.pastKey.data[from] : key[e];
          w.value[to] = j < past ? in.pastValue.data[from] : value[e];
        }
      }
    for (int64_t h = 0; h < c.heads; ++h)
      for (int64_t i = 0; i < c.tokens; ++i) {
        const int64_t own = past + i;
        Numbers q = row(c, in.q, c.heads, b, i, h, own, &in), p(own + 1);
        const int64_t kept = ((b * c.kvHeads + h / group) * all) * c.d;
        double sum = c.hasSink ? std::exp(in.sink.data[h]) : c.isSmooth ? 1 : 0;
        for (int64_t j = c.window > 0 ? std::max<int64_t>(0, own + 1 - c.window) : 0; j <= own; ++j) {
          double s = 0;
          for (int64_t e = 0; e < c.d; ++e) s += q[e] * w.key[kept + j * c.d + e];
          s *= scale;
          if (c.softcap > 0) s = std::tanh(s / c.softcap) * c.softcap;
          if (c.hasBias) s += in.bias.data[(h * c.tokens + i) * all + j];
          sum += p[j] = std::exp(s);
        }
        for (int64_t j = 0; j <= own; ++j)
          for (int64_t e = 0; e < c.d; ++e)
            w.y[((b * c.tokens + i) * c.heads + h) * c.d + e] += p[j] / sum * w.value[kept + j * c.d + e];
      }
  }
  return w;
}

// --- the model

/// With the length of all as exporters have it: dim 1 of a mask, whose name is a symbol of its own.
ModelBuilder model(const GroupQueryCase &c) {
  ModelBuilder m;
  const std::string batch = c.batch() == 1 ? "1" : "B", d = std::to_string(c.d);
  auto width = [&](int64_t heads) { return std::to_string(heads * c.d); };
  std::vector<std::string> inputs(12);
  if (c.isPacked) {
    m.input("q", {batch, "S", width(c.heads + 2 * c.kvHeads)});
    inputs[0] = "q";
  } else {
    m.input("q", {batch, "S", width(c.heads)}).input("k", {batch, "S", width(c.kvHeads)});
    m.input("v", {batch, "S", width(c.kvHeads)});
    inputs[0] = "q", inputs[1] = "k", inputs[2] = "v";
  }
  if (c.hasPast)
    for (unsigned i : {3u, 4u}) {
      inputs[i] = i == 3 ? "past_key" : "past_value";
      m.input(inputs[i], {batch, std::to_string(c.kvHeads), c.longest() ? "P" : "0", d}); // a symbol is at least 1
    }
  m.input("lengths", {batch}, 6).input("mask", {batch, "total"});
  inputs[5] = "lengths", inputs[6] = "total_length";
  m.node("Shape", {"mask"}, {"mask_shape"});
  m.ints("one", {1}).node("Gather", {"mask_shape", "one"}, {"mask_length"});
  ModelBuilder::attribute(m.node("Cast", {"mask_length"}, {"total_length"}), "to", 6);
  if (c.rotary)
    for (unsigned i : {7u, 8u}) {
      inputs[i] = i == 7 ? "cos" : "sin";
      m.input(inputs[i], {std::to_string(kPositions), std::to_string(c.rotary / 2)});
    }
  if (c.hasIds) m.input("ids", {batch, "S"}, 7), inputs[9] = "ids";
  if (c.hasBias) m.input("bias", {"1", std::to_string(c.heads), "S", c.hasPast ? "total" : "S"}), inputs[10] = "bias";
  if (c.hasSink) m.input("sink", {std::to_string(c.heads)}), inputs[11] = "sink";
  while (inputs.back().empty()) inputs.pop_back();
  onnx::Node &node = m.nodeOf("com.microsoft", "GroupQueryAttention", inputs, {"y", "key", "value"});
  m.output("y").output("key").output("value");
  ModelBuilder::attribute(node, "num_heads", c.heads);
  ModelBuilder::attribute(node, "kv_num_heads", c.kvHeads);
  if (c.rotary) ModelBuilder::attribute(node, "do_rotary", 1);
  if (c.interleaved) ModelBuilder::attribute(node, "rotary_interleaved", 1);
  ModelBuilder::attribute(node, "local_window_size", c.window);
  if (c.softcap != 0) ModelBuilder::realAttribute(node, "softcap", c.softcap);
  if (c.scale != 0) ModelBuilder::realAttribute(node, "scale", c.scale);
  if (c.isSmooth) ModelBuilder::attribute(node, "smooth_softmax", 1);
  return m;
}

std::vector<ir::RefTensor> tensorsOf(const GroupQueryCase &c, const Inputs &in) {
  std::vector<ir::RefTensor> tensors;
  if (c.isPacked) {
    ir::RefTensor all = tensor(DType::f32, {c.batch(), c.tokens, (c.heads + 2 * c.kvHeads) * c.d}, {});
    for (int64_t t = 0; t < c.batch() * c.tokens; ++t)
      for (const ir::RefTensor *part : {&in.q, &in.k, &in.v}) {
        int64_t width = part->shape[2];
        all.data.insert(all.data.end(), part->data.begin() + t * width, part->data.begin() + (t + 1) * width);
      }
    tensors.push_back(std::move(all));
  } else {
    tensors.insert(tensors.end(), {in.q, in.k, in.v});
  }
  if (c.hasPast) tensors.insert(tensors.end(), {in.pastKey, in.pastValue});
  tensors.insert(tensors.end(), {in.lengths, in.total});
  if (c.rotary) tensors.insert(tensors.end(), {in.cos, in.sin});
  if (c.hasIds) tensors.push_back(in.ids);
  if (c.hasBias) tensors.push_back(in.bias);
  if (c.hasSink) tensors.push_back(in.sink);
  return tensors;
}

void expectNear(const Numbers &found, const Numbers &wanted, double tolerance, const char *what) {
  ASSERT_EQ(found.size(), wanted.size()) << what;
  for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(found[i], wanted[i], tolerance) << what << ", element " << i;
}

std::vector<GroupQueryCase> cases() {
  std::vector<GroupQueryCase> all;
  auto add = [&](GroupQueryCase c) { all.push_back(std::move(c)); };
  add({.what = "a prompt", .past = {0, 0}, .tokens = 5, .hasPast = false});
  add({.what = "a prompt with an empty past", .past = {0, 0}, .tokens = 5});
  add({.what = "one sequence", .past = {6}});
  add({.what = "several tokens of one sequence", .past = {6}, .tokens = 3});
  add({.what = "sequences of one length", .past = {4, 4}});
  add({.what = "sequences of different lengths", .past = {2, 7, 5}});
  add({.what = "one that is new", .past = {0, 3}});
  add({.what = "a head of keys for each", .past = {3, 5}, .heads = 3, .kvHeads = 3});
  add({.what = "one head of keys", .past = {3, 5}, .heads = 3, .kvHeads = 1});
  add({.what = "packed", .past = {2, 4}, .isPacked = true});
  add({.what = "rotary prompt", .past = {0, 0}, .tokens = 4, .hasPast = false, .rotary = 4});
  add({.what = "rotary", .past = {6}, .tokens = 2, .rotary = 4});
  add({.what = "rotary of different lengths", .past = {2, 7}, .rotary = 4});
  add({.what = "interleaved", .past = {2, 7}, .rotary = 4, .interleaved = true});
  add({.what = "rotary of half a head", .past = {2, 7}, .rotary = 2});
  add({.what = "rotary, packed", .past = {3, 1}, .isPacked = true, .rotary = 4});
  add({.what = "ids", .past = {2, 7}, .hasIds = true, .rotary = 4});
  add({.what = "ids of a prompt", .past = {0, 0}, .tokens = 3, .hasIds = true, .rotary = 4});
  add({.what = "a window", .past = {2, 7}, .window = 3});
  add({.what = "a window over a prompt", .past = {0}, .tokens = 6, .hasPast = false, .window = 2});
  add({.what = "a window of one key", .past = {5}, .tokens = 2, .window = 1});
  add({.what = "softcap", .past = {2, 5}, .softcap = 0.5});
  add({.what = "scale", .past = {2, 5}, .scale = 0.25});
  add({.what = "smooth", .past = {2, 5}, .isSmooth = true});
  add({.what = "sink", .past = {2, 5}, .hasSink = true});
  add({.what = "bias of a prompt", .past = {0, 0}, .tokens = 3, .hasPast = false, .hasBias = true});
  add({.what = "bias with softcap", .past = {4}, .softcap = 2, .hasBias = true});
  return all;
}

TEST(OnnxGroupQueryAttention, AgainstLoopsOverSequences) {
  for (const GroupQueryCase &c : cases()) {
    SCOPED_TRACE(c.what);
    Inputs in(c);
    ModelBuilder m = model(c);
    std::vector<ir::RefTensor> tensors = tensorsOf(c, in), found = resultsOf(m, tensors);
    Wanted wanted = byLoops(c, in);
    expectNear(found[0].data, wanted.y, 1e-6, "y");
    expectNear(found[1].data, wanted.key, 1e-6, "present_key");
    expectNear(found[2].data, wanted.value, 1e-6, "present_value");
    auto imported = onnx::importBytes(m.bytes(), "m.onnx", "");
    ASSERT_TRUE(static_cast<bool>(imported)) << llvm::toString(imported.takeError());
    for (const char *rule : {"", "lift"}) {
      auto compiled = onCpu(*imported->module, tensors, rule);
      ASSERT_EQ(compiled.size(), 3u);
      expectNear(compiled[0], wanted.y, 2e-5, *rule ? "y, small ops" : "y, lifted");
      expectNear(compiled[1], wanted.key, 2e-5, "present_key, compiled");
      expectNear(compiled[2], wanted.value, 2e-5, "present_value, compiled");
    }
  }
}

// What is behind the end of a sequence is not read by its own tokens.
TEST(OnnxGroupQueryAttention, APaddedPromptIsRightWhereItIsNotPadding) {
  GroupQueryCase c{.what = "padded", .past = {0, 0}, .tokens = 5, .rotary = 4, .padding = 2};
  Inputs in(c);
  Numbers found = resultsOf(model(c), tensorsOf(c, in))[0].data, wanted = byLoops(c, in).y;
  const size_t row = c.heads * c.d;
  for (size_t i = 0; i < found.size(); ++i) {
    const bool isPadding = i / row == 3 || i / row == 4;
    if (isPadding) continue;
    EXPECT_NEAR(found[i], wanted[i], 1e-6) << "element " << i;
  }
}

TEST(OnnxGroupQueryAttention, PromptAndDecodingAreLifted) {
  for (const GroupQueryCase &c :
       {GroupQueryCase{.what = "prompt", .past = {0, 0}, .tokens = 5, .hasPast = false, .rotary = 4},
        GroupQueryCase{.what = "one sequence", .past = {6}, .rotary = 4},
        GroupQueryCase{.what = "several sequences", .past = {2, 7}, .rotary = 4}}) {
    SCOPED_TRACE(c.what);
    auto imported = onnx::importBytes(model(c).bytes(), "m.onnx", "");
    ASSERT_TRUE(static_cast<bool>(imported)) << llvm::toString(imported.takeError());
    auto ops = liftedOps(*imported->module);
    EXPECT_EQ(ops["attention"], 1u) << imported->module->str();
    EXPECT_EQ(ops["matmul"], 0u);
    EXPECT_EQ(ops["softmax"], 0u);
  }
}

TEST(OnnxGroupQueryAttention, WhatIsNotReadIsNamed) {
  GroupQueryCase c{.what = "", .past = {2, 7}, .hasBias = true};
  EXPECT_PART(model(c).imported(), "attention_bias behind a past of several sequences is not supported");
  c.hasBias = false, c.heads = 3;
  EXPECT_PART(model(c).imported(), "3 heads of queries are no multiple of 2 of keys");
  c.heads = 4, c.window = 0;
  EXPECT_PART(model(c).imported(), "attribute 'local_window_size' is 0");
  c.window = -1;
  ModelBuilder m = model(c);
  m.ints("nine", {9});
  m.model.mutable_graph()->mutable_node(m.model.graph().node_size() - 1)->set_input(6, "nine");
  EXPECT_PART(m.imported(), "a cache that is shared with the past is not supported: total_sequence_length is 9");
  for (const char *name : {"sliding_window_cache", "qk_output"}) {
    ModelBuilder n = model(c);
    ModelBuilder::attribute(*n.model.mutable_graph()->mutable_node(n.model.graph().node_size() - 1), name, 1);
    EXPECT_PART(n.imported(), "is not supported");
  }
}

} // namespace
} // namespace fusor::tests
