#include "tests/onnx/random_model.h"
#include <cmath>
#include <limits>

namespace fusor::tests {

namespace {

constexpr int64_t kWidth = 8, kHeads = 2, kHeadSize = kWidth / kHeads;
constexpr double kInf = std::numeric_limits<double>::infinity();

} // namespace

std::string RandomModel::name() { return "v" + std::to_string(names_++); }

std::string RandomModel::op(const char *type, std::vector<std::string> inputs) {
  std::string y = name();
  builder.node(type, std::move(inputs), {y});
  return y;
}

std::string RandomModel::either(const char *type, const std::string &a, const std::string &b) {
  return chance(50) ? op(type, {a, b}) : op(type, {b, a});
}

std::string RandomModel::number(double value) {
  std::string c = name();
  builder.initializer(c, chance(20) ? std::vector<int64_t>{1} : std::vector<int64_t>{}, 1)
      .add_float_data(static_cast<float>(value));
  return c;
}

std::string RandomModel::weights(std::vector<int64_t> dims, double deviation) {
  std::string w = name();
  int64_t elements = 1;
  for (int64_t dim : dims) elements *= dim;
  std::normal_distribution<double> normal(0, deviation);
  auto &tensor = builder.initializer(w, std::move(dims), 1);
  for (int64_t i = 0; i < elements; ++i) tensor.add_float_data(static_cast<float>(normal(random_)));
  return w;
}

std::string RandomModel::integers(std::vector<int64_t> values) {
  std::string c = name();
  builder.ints(c, std::move(values));
  return c;
}

// Of the node made last.
void RandomModel::attribute(const char *name, std::vector<int64_t> values) {
  auto &graph = *builder.model.mutable_graph();
  auto *a = graph.mutable_node(graph.node_size() - 1)->add_attribute();
  a->set_name(name);
  a->set_type(7);
  for (int64_t value : values) a->add_ints(value);
}

std::string RandomModel::linear(const std::string &x, int64_t in, int64_t out) {
  std::string y = op("MatMul", {x, weights({in, out}, 1 / std::sqrt(static_cast<double>(in)))});
  if (chance(20)) return y;
  return either("Add", y, weights({chance(10) ? 1 : out}, 0.3)); // one number for all is no bias
}

// x - mean(x), spelt with ReduceMean; its axes are an input from opset 18 on.
std::string RandomModel::layerNorm(const std::string &x) {
  std::string axes = integers({chance(12) ? 1 : -1}); // over tokens: no norm of rows
  std::string d = op("Sub", {x, op("ReduceMean", {x, axes})});
  std::string q = chance(50) ? op("Pow", {d, number(2)}) : op("Mul", {d, d});
  std::string r = op("Sqrt", {either("Add", op("ReduceMean", {q, axes}), number(1e-5))});
  std::string n = chance(50) ? op("Div", {d, r}) : either("Mul", d, op("Reciprocal", {r}));
  n = either("Mul", n, weights({kWidth}, 1));
  return chance(30) ? n : either("Add", n, weights({kWidth}, 0.5));
}

std::string RandomModel::rmsNorm(const std::string &x) {
  std::string q = chance(50) ? op("Pow", {x, number(2)}) : op("Mul", {x, x});
  std::string e = either("Add", op("ReduceMean", {q, integers({-1})}), number(chance(12) ? 0.5 : 1e-6));
  std::string n = chance(50) ? op("Div", {x, op("Sqrt", {e})}) : either("Mul", x, op("Reciprocal", {op("Sqrt", {e})}));
  return either("Mul", n, weights({kWidth}, 1));
}

std::string RandomModel::gelu(const std::string &x) {
  const double half = chance(12) ? 0.55 : 0.5;
  std::string t;
  if (chance(50)) {
    t = op("Erf", {chance(50) ? op("Div", {x, number(std::sqrt(2.0))}) : either("Mul", x, number(std::sqrt(0.5)))});
  } else {
    std::string cube = chance(50) ? op("Pow", {x, number(3)}) : either("Mul", x, op("Mul", {x, x}));
    std::string inner = either("Add", x, either("Mul", cube, number(0.044715)));
    t = op("Tanh", {either("Mul", inner, number(0.7978845608))});
  }
  std::string u = either("Add", t, number(1));
  if (chance(50)) return either("Mul", either("Mul", x, u), number(half));
  return either("Mul", either("Mul", x, number(half)), u);
}

std::string RandomModel::silu(const std::string &x) {
  return either("Mul", x, op("Sigmoid", {chance(24) ? either("Mul", x, number(chance(50) ? 1.702 : 1.5)) : x}));
}

std::string RandomModel::softmax(const std::string &x) {
  if (chance(60)) return op("Softmax", {x});
  std::string axes = integers({-1});
  std::string e = op("Exp", {op("Sub", {x, op("ReduceMax", {x, axes})})});
  return op("Div", {e, op("ReduceSum", {e, axes})});
}

// [B, S, 8] -> [B, 2, S, 4], or with `across` [B, 2, 4, S].
std::string RandomModel::heads(const std::string &x, bool across) {
  std::string apart = op("Reshape", {x, integers({0, 0, kHeads, kHeadSize})}), y = name();
  builder.node("Transpose", {apart}, {y});
  attribute("perm", across ? std::vector<int64_t>{0, 2, 3, 1} : std::vector<int64_t>{0, 2, 1, 3});
  return y;
}

// Rotary embedding of [B, 2, S, 4]; turned the other way it is none.
std::string RandomModel::rotated(const std::string &x) {
  std::string angles =
      op("Mul", {op("Cast", {op("Reshape", {op("Range", {"zero", "length", "one"}), integers({-1, 1})})}),
                 weights({1, kHeadSize}, 1)});
  auto &graph = *builder.model.mutable_graph();
  for (int i = graph.node_size(); i-- > 0;)
    if (graph.node(i).op_type() == "Cast" && graph.node(i).attribute_size() == 0) {
      ModelBuilder::attribute(*graph.mutable_node(i), "to", 1);
      break;
    }
  std::string a = name(), b = name(), y = name();
  ModelBuilder::attribute(builder.node("Split", {x, integers({kHeadSize / 2, kHeadSize / 2})}, {a, b}), "axis", -1);
  std::vector<std::string> parts = {op("Neg", {b}), a};
  if (chance(12)) std::swap(parts[0], parts[1]);
  ModelBuilder::attribute(builder.node("Concat", std::move(parts), {y}), "axis", -1);
  return either("Add", either("Mul", x, op("Cos", {angles})), either("Mul", y, op("Sin", {angles})));
}

// i1[S, S], true where key j <= query i.
std::string RandomModel::causal() {
  std::string i = op("Reshape", {"positions", integers({-1, 1})});
  return chance(50) ? op("LessOrEqual", {"positions", i}) : op("Not", {op("Greater", {"positions", i})});
}

std::string RandomModel::masked(const std::string &scores) {
  std::string keys = op("Reshape", {"mask", integers({0, 1, 1, -1})}), asFloat = name();
  switch (upTo(8)) {
  case 0: return scores;
  case 1: return either("Add", scores, "extra");
  case 2: { // BERT
    ModelBuilder::attribute(builder.node("Cast", {keys}, {asFloat}), "to", 1);
    return either("Add", scores, either("Mul", op("Sub", {number(1), asFloat}), number(-10000)));
  }
  case 3: { // DistilBERT: some key is seen by each query
    std::string hidden = op("Equal", {keys, "zero"});
    return op("Where", {hidden, number(chance(70) ? -kInf : -3.4e38), scores});
  }
  case 4: return op("Where", {causal(), scores, number(chance(50) ? -10000 : -3.4e38)});
  case 5: return either("Add", scores, op("Where", {causal(), number(0), number(-kInf)}));
  case 6: return either("Add", op("Where", {causal(), scores, number(-10000)}), "extra");
  default: return op("Where", {causal(), either("Add", scores, "extra"), number(-3.4e38)});
  }
}

std::string RandomModel::attention(const std::string &x) {
  std::string q = heads(linear(x, kWidth, kWidth), false), k = heads(linear(x, kWidth, kWidth), false),
              v = heads(linear(x, kWidth, kWidth), false);
  if (chance(30)) q = rotated(q), k = rotated(k);
  std::string across = name();
  builder.node("Transpose", {k}, {across});
  attribute("perm", {0, 1, 3, 2});
  const double scale = 1 / std::sqrt(static_cast<double>(kHeadSize));
  if (chance(30)) q = either("Mul", q, number(scale));
  std::string scores = op("MatMul", {q, across});
  if (chance(70)) scores = chance(50) ? op("Div", {scores, number(1 / scale)}) : either("Mul", scores, number(scale));
  std::string o = op("MatMul", {softmax(masked(scores)), v}), back = name();
  builder.node("Transpose", {o}, {back});
  attribute("perm", {0, 2, 1, 3});
  return linear(op("Reshape", {back, integers({0, 0, kWidth})}), kWidth, kWidth);
}

std::string RandomModel::feedForward(const std::string &x) {
  std::string up = linear(x, kWidth, 2 * kWidth);
  if (chance(40)) return linear(either("Mul", silu(linear(x, kWidth, 2 * kWidth)), up), 2 * kWidth, kWidth);
  return linear(gelu(up), 2 * kWidth, kWidth);
}

RandomModel::RandomModel(uint64_t seed) : builder(18), random_(seed) {
  builder.input("x", {"B", "S", std::to_string(kWidth)})
      .input("mask", {"B", "S"}, 7)
      .input("extra", {"B", "1", "S", "S"});
  builder.output("y");
  for (auto [constant, value] : {std::pair("zero", 0), {"one", 1}})
    builder.initializer(constant, {}, 7).add_int64_data(value);
  std::string shape = op("Shape", {"x"});
  builder.node("Gather", {shape, "one"}, {"length"});
  builder.node("Range", {"zero", "length", "one"}, {"positions"});
  std::string x = "x";
  for (unsigned i = 0, n = 2 + upTo(4); i < n; ++i) {
    const unsigned kind = upTo(5);
    static constexpr const char *names[] = {"attention", "feed forward", "layer norm", "rms norm", "tanh"};
    blocks.push_back(names[kind]);
    std::string y = kind == 0   ? attention(x)
                    : kind == 1 ? feedForward(x)
                    : kind == 2 ? layerNorm(x)
                    : kind == 3 ? rmsNorm(x)
                                : op("Tanh", {x});
    x = chance(60) ? either("Add", x, y) : y;
  }
  builder.node("Identity", {x}, {"y"});
}

} // namespace fusor::tests
