#include "frontend/nn/gpt.h"
#include "frontend/builder/graph_state.h"

namespace fusor::nn {
namespace {

using frontend::Access;

LayerOptions layerOptions(const GptConfig &c) {
  NormOptions norm{.rms = c.rmsNorm, .bias = c.bias, .zeroCentredGamma = c.zeroCentredGamma};
  return {.width = c.width,
          .ffn = c.ffn,
          .attention = {.heads = c.heads,
                        .kvHeads = c.kvHeads,
                        .causal = true,
                        .window = c.window,
                        .bias = c.bias,
                        .rope = c.rope,
                        .dropout = c.dropout},
          .mlp = {.activation = c.activation, .bias = c.bias, .norm = norm},
          .order = c.order,
          .dropout = c.dropout};
}

// tokens -> final norm. `at` is null where there is no cache.
Value trunk(Builder &b, Value tokens, const GptConfig &c, const Decoding *at, Site site) {
  Value x = Embedding(b, "emb", c.vocab, c.width, Init::normal(kWeightDeviation), site)(tokens, site);
  if (!c.rope) {
    Value table = b.param("pos.weight", f32, {c.context, c.width}, Init::normal(kWeightDeviation), site);
    Dim length = tokens.dim(1);
    Value positions = table; // [T, width]
    if (at)
      positions = gather(table, Operand(b.iota({length}, i32, site), site) + Operand(at->position, site), 0, site);
    else if (!(length == Dim(c.context)))
      positions = slice(table, {0, 0}, {length, c.width}, site);
    x = (Operand(x, site) + Operand(positions, site)).named("embedded");
  }
  for (int64_t i = 0; i < c.layers; ++i) {
    TransformerLayer layer(b, "blocks." + std::to_string(i), layerOptions(c), site);
    x = at ? layer.decode(x, "cache." + std::to_string(i), *at, site) : layer(x, site);
  }
  if (c.order == ResidualOrder::postNorm) return x; // the last layer ends with its norm
  return Norm(b, "ln_f", c.width, layerOptions(c).mlp.norm, site)(x, site);
}

bool checkTokens(Builder &b, const Value &tokens, const GptConfig &c, Site site) {
  if (tokens.empty()) return false;
  frontend::GraphState &graph = Access::graph(b);
  size_t errors = graph.errors.size();
  if (tokens.rank() != 2 || !ir::isInteger(frontend::toIr(tokens.dtype())))
    graph.fail(site, "gpt needs integer tokens [B, T], is given " + tokens.type());
  else if (tokens.dim(1).isNumber() && tokens.dim(1).number() > c.context)
    graph.fail(site, llvm::formatv("gpt has context {0}, tokens are {1}: make the context larger or the sequence "
                                   "shorter",
                                   c.context, tokens.type()));
  for (auto [name, value] : {std::pair{"vocab", c.vocab},
                             {"width", c.width},
                             {"heads", c.heads},
                             {"layers", c.layers},
                             {"ffn", c.ffn},
                             {"context", c.context}})
    if (value < 1) graph.fail(site, llvm::formatv("gpt: {0} must be at least 1, is {1}", name, value));
  return graph.errors.size() == errors;
}

} // namespace

Value gpt(Builder &b, Value tokens, const GptConfig &c, Site site) {
  if (!checkTokens(b, tokens, c, site)) return {};
  Value x = trunk(b, tokens, c, nullptr, site);
  return Linear(b, "head", c.width, c.vocab, {.bias = false}, site)(x, site).named("logits");
}

Value gptAt(Builder &b, Value tokens, Value place, const GptConfig &c, Site site) {
  if (!checkTokens(b, tokens, c, site) || place.empty()) return {};
  Value x = reshape(trunk(b, tokens, c, nullptr, site), {tokens.dim(0) * tokens.dim(1), c.width}, site);
  Value last = gather(x, reshape(place, {1}, site), 0, site).named("last");
  return Linear(b, "head", c.width, c.vocab, {.bias = false}, site)(last, site).named("logits");
}

Value gptDecode(Builder &b, Value tokens, Value position, const GptConfig &c, Site site) {
  if (!checkTokens(b, tokens, c, site) || position.empty()) return {};
  Dim rows = tokens.dim(0), length = tokens.dim(1);
  if (!rows.isNumber()) {
    Access::graph(b).fail(site, "gptDecode needs a number of sequences, the cache has that many rows: tokens are " +
                                    tokens.type());
    return {};
  }
  Decoding at{.position = position, .batch = rows.number(), .capacity = c.context};
  Value x = trunk(b, tokens, c, &at, site);
  Value last = reshape(slice(x, {0, length - 1, 0}, {rows, 1, c.width}, site), {rows, c.width}, site).named("last");
  return Linear(b, "head", c.width, c.vocab, {.bias = false}, site)(last, site).named("logits");
}

} // namespace fusor::nn
