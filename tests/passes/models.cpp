#include "models.h"
#include "ir/ops/counter_rng.h"

namespace fusor::test {
namespace {

using namespace ir;

void param(Module &m, llvm::StringRef name, Shape shape, Initializer init) {
  m.addPersistent({PersistentKind::param, name.str(), {DType::f32, std::move(shape)}, init, nullptr, {}, {}, {}, {}});
}
const Initializer kNormal{Initializer::Kind::normal, 0.5}, kOne{Initializer::Kind::constant, 1}, kZero{};

Value named(Value v, llvm::StringRef name) {
  v.setName(name);
  return v;
}

} // namespace

std::unique_ptr<Module> mlp() {
  auto m = std::make_unique<Module>("mlp");
  m->declareSymbol("B", {1, 64});
  param(*m, "fc1.weight", {8, 6}, kNormal);
  param(*m, "fc1.bias", {8}, kZero);
  param(*m, "fc2.weight", {5, 8}, kNormal);
  param(*m, "unused", {3}, kZero);
  Function &f = m->addFunction("forward");
  Value x = f.block().addArgument({DType::f32, {Dim::symbol("B"), 6}}, "x");
  Value t = f.block().addArgument({DType::i32, {Dim::symbol("B")}}, "t");
  Builder b(f.block());
  Value h = named(b.op("linear", {x, f.read("fc1.weight"), f.read("fc1.bias")}), "h");
  Value g = named(b.op("gelu", {h}), "g");
  Value y = named(b.op("linear", {g, f.read("fc2.weight")}), "y");
  Value loss = named(b.op("cross_entropy", {y, t}), "loss");
  f.setReturns({{ReturnKind::result, "", loss}, {ReturnKind::result, "", y}});
  return m;
}

std::unique_ptr<Module> transformer() {
  auto m = std::make_unique<Module>("transformer");
  m->declareSymbol("B", {1, 64});
  int64_t V = 7, D = 8, T = 5, F = 16;
  auto layer = [&](const std::string &name, int64_t out, int64_t in) {
    param(*m, name + ".weight", {out, in}, kNormal);
    param(*m, name + ".bias", {out}, kZero);
  };
  auto norm = [&](const std::string &name) {
    param(*m, name + ".weight", {D}, kOne);
    param(*m, name + ".bias", {D}, kZero);
  };
  param(*m, "emb.weight", {V, D}, kNormal);
  param(*m, "pos.weight", {T, D}, kNormal);
  norm("ln1"), layer("qkv", 3 * D, D), layer("proj", D, D), norm("ln2"), layer("fc1", F, D), layer("fc2", D, F),
      norm("ln_f");
  param(*m, "head.weight", {V, D}, kNormal);

  Function &f = m->addFunction("forward");
  Dim B = Dim::symbol("B");
  Value tokens = f.block().addArgument({DType::i32, {B, T}}, "tokens");
  Value targets = f.block().addArgument({DType::i32, {B, T}}, "targets");
  Builder b(f.block());
  auto linear = [&](Value x, const std::string &name) {
    return named(b.op("linear", {x, f.read(name + ".weight"), f.read(name + ".bias")}), name);
  };
  auto layerNorm = [&](Value x, const std::string &name) {
    return named(b.op("layer_norm", {x, f.read(name + ".weight"), f.read(name + ".bias")}), name);
  };
  Value emb = named(b.op("embedding", {f.read("emb.weight"), tokens}), "emb");
  Value h = named(b.op("add", {emb, f.read("pos.weight")}), "h0");
  Op *qkv = b.make("split", {linear(layerNorm(h, "ln1"), "qkv")}, {{"sizes", Shape{D, D, D}}});
  Value att = named(
      b.op("attention", {qkv->result(0), qkv->result(1), qkv->result(2)}, {{"heads", int64_t(2)}, {"causal", true}}),
      "att");
  h = named(b.op("add", {h, linear(att, "proj")}), "h1");
  Value u = named(b.op("gelu", {linear(layerNorm(h, "ln2"), "fc1")}), "u");
  h = named(b.op("add", {h, linear(u, "fc2")}), "h2");
  Value logits = named(b.op("linear", {layerNorm(h, "ln_f"), f.read("head.weight")}), "logits");
  Value loss = named(b.op("cross_entropy", {logits, targets}), "loss");
  f.setReturns({{ReturnKind::result, "", loss}});
  return m;
}

RefState initialState(const Module &module, uint64_t seed) {
  RefState state;
  for (const auto &p : module.persistents()) {
    if (p->kind != PersistentKind::param && p->kind != PersistentKind::state) continue;
    auto tensor = zeros(p->type, {});
    EXPECT_TRUE(static_cast<bool>(tensor));
    tensor->data = initialValues(*p, seed, tensor->elements());
    Persistent noise = *p;
    noise.init = {Initializer::Kind::normal, 0.1};
    if (p->kind == PersistentKind::param && p->init.kind != Initializer::Kind::normal) {
      auto extra = initialValues(noise, seed + 1, tensor->elements());
      for (int64_t i = 0; i < tensor->elements(); ++i) tensor->data[i] += extra[i];
    }
    state[p->name] = std::move(*tensor);
  }
  return state;
}

std::vector<RefTensor> inputsFor(const Function &function, const SymbolValues &symbols, int64_t classes,
                                 uint64_t seed) {
  std::vector<RefTensor> inputs;
  for (Value argument : function.block().arguments()) {
    auto tensor = zeros(argument.type(), symbols);
    EXPECT_TRUE(static_cast<bool>(tensor));
    uint64_t key = rngKey(seed, inputs.size());
    for (int64_t i = 0; i < tensor->elements(); ++i)
      tensor->data[i] =
          isFloat(argument.dtype()) ? rngNormal(key, i) : std::floor(rngUniform(key, i) * double(classes));
    inputs.push_back(std::move(*tensor));
  }
  return inputs;
}

RefResult evaluateOrFail(const Function &function, llvm::ArrayRef<RefTensor> inputs, const RefState &state) {
  auto result = evaluate(function, inputs, state);
  if (!result) {
    ADD_FAILURE() << llvm::toString(result.takeError());
    return {};
  }
  return std::move(*result);
}

void expectSameStep(const Module &one, const Module &other, const SymbolValues &symbols) {
  RefState state = initialState(one);
  auto inputs = inputsFor(*one.function("train_step"), symbols, 7);
  auto a = evaluateOrFail(*one.function("train_step"), inputs, state);
  auto b = evaluateOrFail(*other.function("train_step"), inputs, state);
  EXPECT_EQ(a.results[0].data, b.results[0].data);
  ASSERT_EQ(a.updates.size(), b.updates.size());
  for (const auto &entry : a.updates)
    EXPECT_EQ(entry.second.data, b.updates.find(entry.first())->second.data) << entry.first().str();
}

} // namespace fusor::test
