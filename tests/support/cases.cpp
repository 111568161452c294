#include "tests/support/cases.h"
#include "ir/graph/bug.h"
#include "ir/graph/builder.h"
#include "ir/ops/graph_value.h"
#include "ir/reference/reference.h"
#include "tests/support/recipes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include <random>

namespace fusor::tests {
namespace {

using namespace ir;

class Draws {
public:
  explicit Draws(uint64_t seed) : random_(seed) {}
  double real(double low, double high) {
    return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1p-53; // the same on every standard library
  }
  double integer(double low, double high) { return std::floor(real(low, high + 1)); }

private:
  std::mt19937_64 random_;
};

std::pair<double, double> sampleRange(const OpDef &def, const Operand &o) {
  if (o.low != 0 || o.high != 0) return {o.low, o.high};
  return {def.sampleLow, def.sampleHigh};
}

RefTensor filled(const OpDef &def, const Operand &o, const TensorType &type, Draws &draws) {
  RefTensor tensor = llvm::cantFail(zeros(type, {}));
  auto [low, high] = sampleRange(def, o);
  for (double &v : tensor.data) {
    switch (o.fill) {
    case Operand::Fill::samples: v = isFloat(type.dtype) ? draws.real(low, high) : draws.integer(low, high); break;
    case Operand::Fill::integers: v = draws.integer(o.low, o.high); break;
    case Operand::Fill::booleans: v = draws.real(0, 1) < 0.6; break;
    case Operand::Fill::constant: v = o.low; break;
    case Operand::Fill::result: break;
    }
    v = roundTo(type.dtype, v);
  }
  if (type.granularity == Granularity::tensor) tensor.scale = 0.375;
  return tensor;
}

// The operands of `c` that `o` is a result of go through its op; so saved values fit them.
std::pair<TensorType, RefTensor> savedValue(const OpCase &c, const Operand &o,
                                            llvm::ArrayRef<const RefTensor *> slots) {
  Module module;
  Block &block = module.addFunction("forward").block();
  llvm::SmallVector<Value, 6> operands;
  llvm::SmallVector<const RefTensor *, 6> inputs;
  const OpDef &def = opDef(o.op);
  Attrs attrs;
  for (const Attrs::Entry &entry : c.attrs.entries())
    if (def.attr(entry.name)) attrs.set(entry.name, entry.value);
  for (unsigned i : o.of) {
    operands.push_back(c.types[i] ? block.addArgument(*c.types[i], "a") : Value());
    inputs.push_back(slots[i]);
  }
  Op *op = Builder(block).make(o.op, operands, attrs);
  inputs.resize(op->operands().size());
  std::vector<RefTensor> outputs;
  for (Value result : op->results()) outputs.push_back(llvm::cantFail(zeros(result.type(), {})));
  llvm::cantFail(evaluateOp(op->site(), inputs, outputs, {}));
  return {op->result(o.index).type(), std::move(outputs[o.index])};
}

OpCase caseOf(const OpDef &def, const Recipe &recipe, DType dtype, uint64_t seed) {
  OpCase c{&def, {}, {}, recipe.attrs, recipe.differentiable};
  Draws draws(seed);
  std::vector<RefTensor> slots(recipe.operands.size());
  llvm::SmallVector<const RefTensor *, 6> present(recipe.operands.size(), nullptr);
  for (const Operand &o : recipe.operands)
    c.types.push_back(o.absent || o.fill == Operand::Fill::result
                          ? std::nullopt
                          : std::optional(TensorType{o.dtype.value_or(o.accumulates ? computeType(dtype) : dtype),
                                                     o.shape, o.granularity}));
  for (auto i : llvm::seq<size_t>(0, slots.size())) {
    if (!c.types[i]) continue;
    slots[i] = filled(def, recipe.operands[i], *c.types[i], draws);
    present[i] = &slots[i];
  }
  for (auto i : llvm::seq<size_t>(0, slots.size())) {
    if (recipe.operands[i].fill != Operand::Fill::result) continue;
    auto [type, value] = savedValue(c, recipe.operands[i], present);
    c.types[i] = std::move(type);
    slots[i] = std::move(value);
  }
  for (auto i : llvm::seq<size_t>(0, slots.size()))
    if (c.types[i]) c.inputs.push_back(std::move(slots[i]));
  return c;
}

// Shapes of an elementwise op's operands, taken in turn.
std::vector<std::vector<Shape>> elementwiseShapes(Sizes sizes) {
  if (sizes == Sizes::small) return {{{7}}, {{2, 3}, {3}}, {{}, {2, 3}, {2, 1}}, {{2, 1}, {1, 3}}};
  return {{{1}},
          {{31}},
          {{4097}},
          {{0}},
          {{}},
          {{4, 31}, {31}},
          {{4, 1}, {1, 33}},
          {{}, {4097}},
          {{0, 3}, {3}, {}},
          {{2, 3, 5}, {3, 1}, {5}}};
}

bool takes(const OpDef &def, DType dtype) {
  switch (def.typeClass) {
  case TypeClass::floats: return isFloat(dtype);
  case TypeClass::numbers: return dtype != DType::i1;
  case TypeClass::booleans: return dtype == DType::i1;
  case TypeClass::any: return true;
  }
  return false;
}

std::vector<Recipe> elementwiseRecipes(const OpDef &def, DType dtype, Sizes sizes) {
  std::vector<Recipe> all;
  if (!takes(def, dtype)) return all;
  std::vector<Attrs> attrs(1);
  for (const AttrSpec &spec : def.attrs) { // each choice of a word, a value for what is required
    if (spec.required && spec.kind == AttrKind::dtype)
      attrs = {{{spec.name, DType::f32}}, {{spec.name, DType::bf16}}, {{spec.name, DType::i32}}};
    for (const std::string &choice : llvm::drop_begin(spec.choices, spec.choices.empty() ? 0 : 1))
      attrs.push_back({{spec.name, choice}});
  }
  for (const Attrs &a : attrs)
    for (const auto &shapes : elementwiseShapes(sizes)) {
      if (shapes.size() > 1 && shapes.size() > def.formula.arity) continue;
      Recipe recipe{{}, a};
      for (unsigned i = 0; i < def.formula.arity; ++i) {
        Operand o{.shape = shapes[i % shapes.size()]};
        if (llvm::is_contained(def.untypedOperands, i) || dtype == DType::i1)
          o.fill = Operand::Fill::booleans, o.dtype = DType::i1;
        else if (isInteger(dtype))
          o.low = std::ceil(std::max(def.sampleLow, 1.0)), o.high = o.low + 8, o.fill = Operand::Fill::integers;
        recipe.operands.push_back(std::move(o));
      }
      all.push_back(std::move(recipe));
    }
  return all;
}

} // namespace

std::unique_ptr<Module> OpCase::module() const {
  auto module = std::make_unique<Module>("case");
  Function &function = module->addFunction("case");
  llvm::SmallVector<Value, 6> operands;
  for (unsigned i = 0; i < types.size(); ++i)
    operands.push_back(types[i] ? function.block().addArgument(*types[i], "a" + std::to_string(i)) : Value());
  Builder builder(function.block());
  llvm::SmallVector<ReturnEntry, 4> returns;
  for (Value result : builder.make(def->name, operands, attrs)->results())
    returns.push_back({ReturnKind::result, "", result});
  function.setReturns(returns);
  return module;
}

std::string OpCase::text() const { return module()->str(); }

std::vector<OpCase> casesOf(const OpDef &def, DType dtype, Sizes sizes, uint64_t seed) {
  std::vector<OpCase> cases;
  std::vector<Recipe> recipes = def.isElementwise() ? elementwiseRecipes(def, dtype, sizes) : recipesOf(def.name);
  for (const Recipe &recipe : recipes) {
    if (!def.isElementwise()) {
      if (!isFloat(dtype)) continue;
      if (recipe.isRagged != (sizes == Sizes::ragged)) continue;
    }
    cases.push_back(caseOf(def, recipe, dtype, seed + cases.size()));
  }
  return cases;
}

bool isStructural(const OpDef &def) { return def.isTerminator || def.name == "fusion"; }

llvm::ArrayRef<DType> caseDTypes() {
  static constexpr DType types[] = {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32, DType::i1};
  return types;
}

} // namespace fusor::tests
