#include "frontend/nn/transformer.h"
#include "frontend/builder/graph_state.h"

namespace fusor::nn {
using frontend::Access;

namespace {

int64_t kvHeads(const AttentionLayerOptions &o) { return o.kvHeads ? o.kvHeads : o.heads; }

// Head size, after checking what the packed projection needs; 0 after an error, which it records.
int64_t headSize(Builder &b, const std::string &name, int64_t width, const AttentionLayerOptions &o, Site site) {
  frontend::GraphState &graph = Access::graph(b);
  if (o.heads < 1 || width % o.heads) {
    graph.fail(site, llvm::formatv("'{0}': width {1} must be a multiple of heads = {2}", name, width, o.heads));
    return 0;
  }
  if (kvHeads(o) < 1 || o.heads % kvHeads(o)) {
    graph.fail(site, llvm::formatv("'{0}': kvHeads = {1} must divide heads = {2}", name, kvHeads(o), o.heads));
    return 0;
  }
  return width / o.heads;
}

// The number of a place in the random streams: a function of its name alone (FNV-1a), so that it does not depend on
// what else a model has.
int64_t streamOf(const std::string &name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : name) hash = (hash ^ c) * 0x100000001b3;
  return static_cast<int64_t>(hash >> 1);
}

} // namespace

Value dropout(Builder &b, Value x, double rate, const std::string &name, Site site) {
  if (rate == 0) return x;
  const std::string counter = "dropout.step";
  frontend::GraphState &graph = Access::graph(b);
  Value step;
  if (graph.declaredHere.contains(counter)) {
    step = b.read(counter, site);
  } else {
    step = b.state(counter, i32, {}, {}, site);
    b.update(counter, Operand(step, site) + Operand(1.0, site), site);
  }
  return fusor::dropout(x, step, rate, streamOf(name), site).named(name + ".dropout");
}

MultiheadAttention::MultiheadAttention(Builder &b, const std::string &name, int64_t width,
                                       const AttentionLayerOptions &o, Site site)
    : builder_(b), name_(name), width_(width), headSize_(headSize(b, name, width, o, site)), options_(o),
      qkv_(b, name + ".qkv", width, width + 2 * kvHeads(o) * headSize_, {.bias = o.bias}, site),
      proj_(b, name + ".proj", width, width, {.bias = o.bias}, site) {}

// q, k, v as parts of the packed projection; rotated by `positions` where rope is on.
std::vector<Value> MultiheadAttention::packed(Value x, Value positions, Site site) const {
  int64_t kvWidth = kvHeads(options_) * headSize_;
  auto parts = split(qkv_(x, site), {width_, kvWidth, kvWidth}, -1, site);
  const char *names[] = {".q", ".k", ".v"};
  for (int i = 0; i < 3; ++i) parts[i].named(name_ + names[i]);
  if (options_.rope) {
    parts[0] = rope(parts[0], positions, options_.heads, options_.ropeBase, site);
    parts[1] = rope(parts[1], positions, kvHeads(options_), options_.ropeBase, site);
  }
  return parts;
}

Value MultiheadAttention::operator()(Value x, Site site) const {
  if (headSize_ == 0) return {};
  Value positions = options_.rope && x.rank() == 3 ? builder_.iota({x.dim(1)}, i32, site) : Value();
  auto qkv = packed(x, positions, site);
  Value y =
      attention(
          qkv[0], qkv[1], qkv[2],
          {.heads = options_.heads, .kvHeads = options_.kvHeads, .causal = options_.causal, .window = options_.window},
          site)
          .named(name_ + ".attention");
  return dropout(builder_, proj_(y, site), options_.dropout, name_ + ".proj", site);
}

Value MultiheadAttention::decode(Value x, const std::string &cache, const Decoding &at, Site site) const {
  if (x.rank() != 3 || headSize_ == 0) return {};
  Value positions =
      options_.rope ? Operand(builder_.iota({x.dim(1)}, i32, site), site) + Operand(at.position, site) : Value();
  auto qkv = packed(x, positions, site);
  int64_t kvWidth = kvHeads(options_) * headSize_;
  Value kv[2];
  for (int i = 0; i < 2; ++i) {
    std::string name = cache + (i ? ".v" : ".k");
    Value before = builder_.state(name, f32, {at.batch, at.capacity, kvWidth}, {}, site);
    kv[i] = builder_.op("cache_write", {before, qkv[1 + i], at.position}, {}, site).named(name);
    builder_.update(name, kv[i], site);
  }
  Value length = Operand(at.position, site) + Operand(builder_.extent({x.dim(1)}, i32, site), site);
  Value y = attention(qkv[0], kv[0], kv[1],
                      {.heads = options_.heads,
                       .kvHeads = options_.kvHeads,
                       .causal = options_.causal,
                       .window = options_.window,
                       .kvLength = length},
                      site)
                .named(name_ + ".attention");
  return proj_(y, site);
}

TransformerLayer::TransformerLayer(Builder &b, const std::string &name, const LayerOptions &o, Site site)
    : builder_(b), name_(name), options_(o), ln1_(b, name + ".ln1", o.width, o.mlp.norm, site),
      attention_(b, name, o.width, o.attention, site), mlp_(b, name, o.width, o.ffn, o.mlp, site) {}

Value TransformerLayer::run(Value x, const std::string &cache, const Decoding *at, Site site) const {
  auto attend = [&](Value v) { return at ? attention_.decode(v, cache, *at, site) : attention_(v, site); };
  auto feed = [&](Value v) {
    Value y = mlp_.feedForward(v, site);
    return at ? y : dropout(builder_, y, options_.dropout, name_ + ".fc2", site);
  };
  auto plus = [&](Value a, Value b, const char *suffix) {
    return (Operand(a, site) + Operand(b, site)).named(name_ + suffix);
  };
  if (options_.order == ResidualOrder::preNorm) {
    x = plus(x, attend(ln1_(x, site)), ".mid");
    return plus(x, feed(mlp_.norm(x, site)), ".out");
  }
  x = ln1_(plus(x, attend(x), ".mid"), site);
  return mlp_.norm(plus(x, feed(x), ".out"), site);
}

} // namespace fusor::nn
