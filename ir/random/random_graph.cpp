#include "ir/random/random_graph.h"
#include "ir/graph/builder.h"
#include "ir/ops/counter_rng.h"
#include "ir/ops/graph_value.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::ir {
namespace {

using Integers = std::vector<int64_t>;

class Generator {
public:
  Generator(Module &module, uint64_t seed, const RandomGraphOptions &options)
      : module_(module), function_(module.addFunction("random")), b_(function_.block()), options_(options),
        key_(rngKey(seed, 0)) {}

  void run() {
    batch_ = options_.symbolic && flip() ? Dim::symbol("B") : Dim(1 + pick(4));
    if (!batch_.isConstant()) module_.declareSymbol("B", {1, 8});
    static constexpr int64_t lengths[] = {1, 3, 5, 8}, widths[] = {1, 4, 6, 8, 31};
    Dim t(lengths[pick(4)]), c(widths[pick(5)]);
    for (unsigned i = 0, n = 1 + pick(3); i < n; ++i) argument({batch_, t, c});
    if (flip()) argument({c});
    if (flip()) argument({batch_, t, Dim(1)});
    if (flip()) argument({batch_, c});
    for (unsigned i = 0; i < options_.ops; ++i) move();
    finish();
  }

private:
  struct Known {
    Value value;
    double bound; // rough size of its elements
  };

  unsigned pick(unsigned n) { return static_cast<unsigned>(rngBits(key_, counter_++) % n); }
  bool flip() { return pick(2); }

  Value argument(Shape shape, DType dtype = DType::f32) {
    Value v = function_.block().addArgument({dtype, std::move(shape)}, "x" + std::to_string(arguments_++));
    if (isFloat(dtype)) keep(v, 3);
    return v;
  }
  Value param(const char *prefix, Shape shape, double init) {
    if (!options_.persistent)
      return function_.block().addArgument({DType::f32, shape}, prefix + std::to_string(arguments_++));
    std::string name = std::string(prefix) + "." + std::to_string(persistents_++);
    module_.addPersistent({.kind = PersistentKind::param,
                           .name = name,
                           .type = {DType::f32, std::move(shape)},
                           .init = {Initializer::Kind::normal, init}});
    return function_.read(name);
  }

  void keep(Value v, double bound) {
    if (v.name().empty()) v.setName("v" + std::to_string(named_++));
    known_.push_back({v, bound});
  }
  const Known &any() {
    return known_[pick(2) ? known_.size() - 1 - pick(std::min<unsigned>(4, known_.size())) : pick(known_.size())];
  }
  template <typename Fits> const Known *find(Fits fits) {
    for (unsigned tries = 0; tries < 12; ++tries)
      if (const Known &k = any(); fits(k.value)) return &k;
    return nullptr;
  }
  Value op(llvm::StringRef name, llvm::ArrayRef<Value> operands, Attrs attrs = {}) {
    return b_.op(name, operands, std::move(attrs));
  }

  void move() {
    static constexpr void (Generator::*moves[])() = {
        &Generator::unary,     &Generator::unary,    &Generator::unary,     &Generator::binary,  &Generator::binary,
        &Generator::binary,    &Generator::binary,   &Generator::reduce,    &Generator::softmax, &Generator::norm,
        &Generator::transpose, &Generator::reshape,  &Generator::slice,     &Generator::concat,  &Generator::split,
        &Generator::pad,       &Generator::linear,   &Generator::matmul,    &Generator::attend,  &Generator::cast,
        &Generator::choose,    &Generator::quantize, &Generator::embedding, &Generator::dropout, &Generator::constant};
    (this->*moves[pick(std::size(moves))])();
  }

  void unary() {
    struct Unary {
      const char *name;
      double bound; // of its result; 0: that of its operand
    };
    static constexpr Unary smooth[] = {{"tanh", 1}, {"gelu", 0}, {"silu", 0}, {"sigmoid", 1}, {"relu", 0},
                                       {"neg", 0},  {"abs", 0},  {"sin", 1},  {"erf", 1},     {"softplus", 0}};
    static constexpr Unary jumps[] = {{"floor", 0}, {"sign", 1}, {"round", 0}};
    Known k = any();
    const Unary &u = options_.discontinuous && pick(8) == 0 ? jumps[pick(3)] : smooth[pick(std::size(smooth))];
    Attrs attrs;
    if (llvm::StringRef(u.name) == "gelu" && flip()) attrs.set("form", std::string("erf"));
    keep(op(u.name, {k.value}, attrs), u.bound ? u.bound : k.bound + 0.7);
  }

  void binary() {
    Known a = any();
    auto fits = [&](Value v) { return broadcastShapes({a.value.shape(), v.shape()}).has_value(); };
    const Known *found = find(fits);
    Known c = found ? *found : a;
    static constexpr const char *names[] = {"add", "sub", "mul", "max", "min", "add", "mul"};
    const char *name = names[pick(std::size(names))];
    bool product = llvm::StringRef(name) == "mul";
    if (product && a.bound * c.bound > 30) name = "add", product = false;
    Value second = b_.cast(c.value, a.value.dtype());
    keep(op(name, {a.value, second}), product ? a.bound * c.bound : a.bound + c.bound);
    tame();
  }
  // A value that has grown is brought back, as normalisation does in a network.
  void tame() {
    Known k = known_.back();
    if (k.bound > 30) keep(op("tanh", {k.value}), 1);
  }

  void reduce() {
    const Known *k = find([](Value v) { return v.rank() > 0; });
    if (!k) return;
    Known x = *k;
    static constexpr const char *names[] = {"mean", "reduce_max", "reduce_min", "sum"};
    const char *name = names[pick(x.value.rank() < 3 ? 3 : 4)];
    int64_t dim = flip() ? int64_t(-1) : int64_t(pick(x.value.rank()));
    double grown = llvm::StringRef(name) == "sum" ? 31 : 1;
    keep(op(name, {x.value}, {{"dims", Integers{dim}}, {"keep", flip()}}), x.bound * grown);
    tame();
  }
  void softmax() {
    if (const Known *k = find([](Value v) { return v.rank() > 0; }))
      keep(op(pick(3) ? "softmax" : "log_softmax", {k->value}), 8);
  }
  void norm() {
    const Known *k = find([](Value v) { return v.rank() > 0 && v.shape().back().isConstant(); });
    if (!k) return;
    Value x = k->value, weight, bias;
    if (flip()) weight = param("norm", {x.shape().back()}, 1);
    if (flip()) {
      keep(op("rms_norm", {x, weight}), 6);
      return;
    }
    if (flip()) bias = param("bias", {x.shape().back()}, 1);
    keep(op("layer_norm", {x, weight, bias}), 7);
  }

  void transpose() {
    const Known *k = find([](Value v) { return v.rank() > 1; });
    if (!k) return;
    Known x = *k;
    Integers perm(x.value.rank());
    for (unsigned i = 0; i < perm.size(); ++i) perm[i] = i;
    std::swap(perm[pick(perm.size())], perm[pick(perm.size())]);
    keep(op("transpose", {x.value}, {{"perm", perm}}), x.bound);
  }
  void reshape() {
    Known x = any();
    Shape shape(x.value.shape().begin(), x.value.shape().end());
    if (shape.size() > 1 && flip()) { // two neighbours into one
      unsigned i = pick(shape.size() - 1);
      shape[i] = shape[i] * shape[i + 1];
      shape.erase(shape.begin() + i + 1);
    } else if (!shape.empty() && shape.back().isConstant() && shape.back().value() % 2 == 0 && shape.size() < 4) {
      Dim half(shape.back().value() / 2);
      shape.back() = Dim(2), shape.push_back(half);
    } else if (shape.size() < 4) {
      shape.push_back(Dim(1));
    }
    keep(op("reshape", {x.value}, {{"shape", shape}}), x.bound);
  }
  static bool cuttable(Value v) {
    return v.rank() > 0 && v.shape().back().isConstant() && v.shape().back().value() > 1;
  }
  void slice() {
    const Known *k = find(cuttable);
    if (!k) return;
    Known x = *k;
    Shape start(x.value.rank(), Dim(0)), size(x.value.shape().begin(), x.value.shape().end());
    int64_t n = size.back().value(), from = pick(n), length = 1 + pick(n - from);
    start.back() = Dim(from), size.back() = Dim(length);
    Attrs attrs{{"start", start}, {"size", size}};
    if (pick(4) == 0) { // every second, from the front
      Integers step(x.value.rank(), 1);
      step.back() = 2, start.back() = Dim(0), size.back() = Dim((n + 1) / 2);
      attrs = {{"start", start}, {"size", size}, {"step", step}};
    }
    keep(op("slice", {x.value}, attrs), x.bound);
  }
  void pad() {
    const Known *k = find([](Value v) { return v.rank() > 0 && v.rank() < 4; });
    if (!k) return;
    Known x = *k;
    Shape before(x.value.rank(), Dim(0)), after = before;
    before.back() = Dim(pick(3)), after.back() = Dim(pick(3));
    keep(op("pad", {x.value}, {{"before", before}, {"after", after}, {"value", flip() ? 0.0 : 1.0}}), x.bound + 1);
  }
  void concat() {
    const Known *k = find([](Value v) { return v.rank() > 0; });
    if (!k) return;
    Known x = *k;
    const Known *other = find([&](Value v) {
      return v.rank() == x.value.rank() && v.dtype() == x.value.dtype() &&
             v.shape().drop_back() == x.value.shape().drop_back();
    });
    Known y = other ? *other : x;
    keep(op("concat", {x.value, y.value}), std::max(x.bound, y.bound));
  }
  void split() {
    const Known *k = find(cuttable);
    if (!k) return;
    Known x = *k;
    int64_t n = x.value.shape().back().value(), first = 1 + pick(n - 1);
    for (Value part : b_.make("split", {x.value}, {{"sizes", Shape{first, n - first}}})->results()) keep(part, x.bound);
  }

  Value weight(Shape shape, DType dtype) {
    double width = static_cast<double>(shape.back().value());
    return b_.cast(param("w", std::move(shape), 1 / std::sqrt(std::max(width, 1.0))), dtype);
  }
  void linear() {
    if (!options_.contractions) return;
    const Known *k = find([](Value v) { return v.rank() > 0 && v.shape().back().isConstant(); });
    if (!k) return;
    Known x = *k;
    static constexpr int64_t widths[] = {1, 3, 8, 17};
    int64_t n = widths[pick(4)];
    Value bias = flip() ? b_.cast(param("bias", {n}, 1), x.value.dtype()) : Value();
    keep(op("linear", {x.value, weight({n, x.value.shape().back()}, x.value.dtype()), bias}), x.bound * 3 + 3);
    tame();
  }
  void matmul() {
    if (!options_.contractions) return;
    const Known *k = find([](Value v) { return v.rank() > 1 && v.rank() < 4; });
    if (!k) return;
    Known x = *k;
    if (flip()) { // x x^T
      Value small = op("tanh", {x.value});
      keep(op("matmul", {small, small}, {{flip() ? "trans_a" : "trans_b", true}}), 31);
    } else if (const Dim &k = x.value.shape().back(); k.isConstant()) {
      bool transposed = flip();
      int64_t n = 1 + pick(9), width = k.value();
      Value w = weight(transposed ? Shape{n, width} : Shape{width, n}, x.value.dtype());
      keep(op("matmul", {x.value, w}, {{"trans_b", transposed}}), x.bound * 3);
    } else {
      return;
    }
    tame();
  }
  void attend() {
    if (!options_.contractions) return;
    const Known *k = find([](Value v) {
      return v.rank() == 3 && v.shape()[2].isConstant() && v.shape()[2].value() % 2 == 0 && v.shape()[2].value() > 0;
    });
    if (!k) return;
    Known x = *k;
    Attrs attrs{{"heads", int64_t(2)}, {"causal", flip()}};
    if (pick(4) == 0) attrs.set("window", int64_t(2));
    Value q = x.value;
    if (flip() && q.shape()[2].value() % 4 == 0) {
      Value positions = op("iota", {}, {{"shape", Shape{q.shape()[1]}}});
      q = op("rope", {q, positions}, {{"heads", int64_t(2)}});
    }
    keep(op("attention", {q, x.value, x.value}, attrs), x.bound);
  }

  void cast() {
    Known x = any();
    if (options_.narrow) keep(b_.cast(x.value, x.value.dtype() == DType::bf16 ? DType::f32 : DType::bf16), x.bound);
  }
  void choose() {
    if (!options_.discontinuous) return;
    Known a = any();
    const Known *found = find([&](Value v) { return broadcastShapes({a.value.shape(), v.shape()}).has_value(); });
    Known c = found ? *found : a;
    Value second = b_.cast(c.value, a.value.dtype());
    Value condition = op(flip() ? "lt" : "ge", {a.value, second});
    keep(op("select", {condition, a.value, second}), a.bound + c.bound);
  }
  void constant() {
    Known a = any();
    Value c = b_.constant(0.25 * (1 + pick(8)), a.value.dtype());
    keep(op(flip() ? "mul" : "add", {a.value, c}), a.bound * 2);
    tame();
  }
  void quantize() {
    if (!options_.fp8 || !options_.persistent) return;
    const Known *k = find([](Value v) { return v.rank() > 0; });
    if (!k) return;
    std::string name = "fp8." + std::to_string(persistents_++) + ".scale";
    module_.addPersistent({.kind = PersistentKind::state,
                           .name = name,
                           .type = {DType::f32, {}},
                           .init = {Initializer::Kind::constant, 4}});
    Known x = *k;
    Attrs attrs;
    if (flip()) attrs.set("dtype", DType::f8e5m2);
    Value q = op("quantize", {x.value, function_.read(name)}, attrs);
    keep(op("dequantize", {q}, {{"to", x.value.dtype()}}), x.bound);
  }
  void embedding() {
    if (!options_.contractions) return;
    Value ids = argument({batch_, Dim(3)}, DType::i32);
    keep(op("embedding", {param("emb", {7, 8}, 1), ids}), 4);
  }
  void dropout() {
    if (!options_.random) return;
    Known x = any();
    if (!seed_) seed_ = function_.block().addArgument({DType::i64, {}}, "seed");
    keep(op("dropout", {x.value, seed_}, {{"rate", 0.25}, {"stream", int64_t(named_)}}), x.bound * 1.34);
    tame();
  }

  Value meanOf(Value v) { return op("mean", {b_.cast(v, DType::f32)}); }
  void finish() {
    llvm::SmallVector<ReturnEntry, 4> returns;
    if (options_.loss) {
      Value loss;
      for (const Known &k : known_)
        if (k.value.unused() && !k.value.isArgument()) {
          Value m = meanOf(k.value);
          loss = loss ? op("add", {loss, m}) : m;
        }
      if (!loss) loss = meanOf(known_.back().value);
      returns.push_back({ReturnKind::result, "", loss});
    }
    unsigned results = 1 + pick(3), left = results;
    for (const Known &k : llvm::reverse(known_)) // the newest; what is not reached from them is dead code
      if (left && (k.value.unused() || pick(4) == 0)) returns.push_back({ReturnKind::result, "", k.value}), --left;
    if (left == results) returns.push_back({ReturnKind::result, "", known_.back().value});
    if (options_.persistent && flip()) {
      if (const Known *k = find([](Value v) { return v.type().elements().isConstant(); })) {
        module_.addPersistent({.kind = PersistentKind::state, .name = "kept", .type = k->value.type()});
        returns.push_back({ReturnKind::update, "kept", op("add", {function_.read("kept"), k->value})});
      }
    }
    function_.setReturns(returns);
  }

  Module &module_;
  Function &function_;
  Builder b_;
  RandomGraphOptions options_;
  uint64_t key_, counter_ = 0;
  Dim batch_;
  Value seed_;
  std::vector<Known> known_;
  unsigned arguments_ = 0, persistents_ = 0, named_ = 0;
};

uint64_t hashOf(llvm::StringRef name) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (unsigned char c : name) hash = (hash ^ c) * 0x100000001b3ull;
  return hash;
}

RefTensor drawn(const TensorType &type, llvm::StringRef name, uint64_t seed, const SymbolValues &symbols) {
  RefTensor tensor = llvm::cantFail(zeros(type, symbols));
  uint64_t key = rngKey(seed, hashOf(name));
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    auto element = static_cast<uint64_t>(i);
    double v = isFloat(type.dtype) ? rngNormal(key, element) : static_cast<double>(rngBits(key, element) % 7);
    if (name.endswith(".scale")) v = 1 + std::fabs(v);
    tensor.data[i] = roundTo(type.dtype, type.dtype == DType::f32 ? static_cast<float>(v) : v);
  }
  return tensor;
}

} // namespace

std::unique_ptr<Module> randomModule(uint64_t seed, const RandomGraphOptions &options) {
  auto module = std::make_unique<Module>("random");
  Generator(*module, seed, options).run();
  return module;
}

RandomInputs randomInputs(const Function &function, uint64_t seed, SymbolValues symbols) {
  const Module &module = function.module();
  RandomInputs result;
  for (const auto &[symbol, range] : module.symbols()) {
    uint64_t span = static_cast<uint64_t>(std::min<int64_t>(range.high - range.low, 7)) + 1;
    symbols.try_emplace(symbol, range.low + static_cast<int64_t>(rngBits(rngKey(seed, 1), hashOf(symbol)) % span));
  }
  for (Value argument : function.block().arguments())
    result.inputs.push_back(drawn(argument.type(), argument.name(), seed, symbols));
  for (Value read : function.reads()) {
    const Persistent *p = module.persistent(read.name());
    if (!p || (p->kind != PersistentKind::param && p->kind != PersistentKind::state)) continue;
    RefTensor tensor = drawn(p->type, p->name, seed, symbols);
    if (p->init.kind == Initializer::Kind::normal)
      for (double &v : tensor.data) v = roundTo(p->type.dtype, static_cast<float>(v * p->init.value));
    result.state[p->name] = std::move(tensor);
  }
  result.symbols = std::move(symbols);
  return result;
}

} // namespace fusor::ir
