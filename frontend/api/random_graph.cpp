#include "frontend/api/random_graph.h"
#include "frontend/api/compile_module.h"
#include "frontend/api/tensor_files.h"
#include "ir/graph/builder.h"
#include "ir/graph/literal.h"
#include "ir/ops/counter_rng.h"
#include "ir/reference/initial_values.h"
#include "ir/reference/reference.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

namespace fusor::frontend {
namespace {

using ir::Dim, ir::DType, ir::Shape, ir::Value;

constexpr int64_t kMaxRows = 9; // of the symbol N
constexpr int64_t kWidth = 8;   // of most last dims

class Random {
public:
  explicit Random(uint64_t seed) : key_(ir::rngKey(seed, 0xf022)) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(ir::rngBits(key_, count_++) % static_cast<uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }
  template <typename T> const auto &of(const T &container) {
    return container[below(static_cast<int64_t>(std::size(container)))];
  }

private:
  uint64_t key_, count_ = 0;
};

/// Ops that fit anywhere: smooth, of numbers, without required attributes.
llvm::ArrayRef<const ir::OpDef *> smoothOps() {
  static const std::vector<const ir::OpDef *> ops = [] {
    std::vector<const ir::OpDef *> smooth;
    for (const ir::OpDef *def : ir::allOps()) {
      bool numeric = def->typeClass == ir::TypeClass::floats || def->typeClass == ir::TypeClass::numbers;
      bool plain = llvm::none_of(def->attrs, [](const ir::AttrSpec &a) { return a.required; });
      if (def->isElementwise() && numeric && plain && !def->yieldsBoolean && !def->gradientIsZeroAlmostEverywhere &&
          def->name != "mod" && def->operands.size() <= 2 && def->untypedOperands.empty())
        smooth.push_back(def);
    }
    return smooth;
  }();
  return ops;
}

class Generator {
public:
  explicit Generator(uint64_t seed) : random_(seed), module_(std::make_unique<ir::Module>("fuzz")) {
    module_->declareSymbol("N", {1, kMaxRows});
    function_ = &module_->addFunction("forward");
    ir::Block &block = function_->block();
    Dim n = Dim::symbol("N");
    const Shape shapes[] = {{n, kWidth}, {n, 3, kWidth}, {kWidth}, {n, 1}, {5, n, kWidth}};
    for (int i = 0; i < 3; ++i)
      pool_.push_back(
          block.addArgument({DType::f32, i == 0 ? shapes[1] : random_.of(shapes)}, "x" + std::to_string(i)));
    ids_ = block.addArgument({DType::i32, {n, 3}}, "ids");
  }

  std::unique_ptr<ir::Module> make(unsigned ops) {
    for (unsigned made = 0, tries = 0; made < ops && tries < 20 * ops; ++tries) made += step();
    llvm::SmallVector<ir::ReturnEntry, 4> returns;
    for (ir::Op &op : function_->block().ops())
      if (op.unused() && op.resultCount() > 0) returns.push_back({ir::ReturnKind::result, "", op.result()});
    function_->setReturns(returns);
    return std::move(module_);
  }

private:
  ir::Builder builder() { return ir::Builder(function_->block()); }
  /// Adds the op's results to what later ops read; false where it does not fit.
  bool add(llvm::StringRef name, llvm::ArrayRef<Value> operands, ir::Attrs attrs = {}) {
    auto op = builder().create(name, operands, std::move(attrs));
    if (!op) {
      llvm::consumeError(op.takeError());
      return false;
    }
    unsigned results = (*op)->is("split") ? (*op)->resultCount() : 1; // statistics are not read further
    for (unsigned i = 0; i < results; ++i) pool_.push_back((*op)->result(i));
    return true;
  }
  Value any() {
    return random_.chance(60) ? pool_[pool_.size() - 1 - random_.below(std::min<int64_t>(pool_.size(), 3))]
                              : random_.of(pool_);
  }
  Value parameter(Shape shape, double deviation) {
    std::string name = "w" + std::to_string(module_->persistents().size());
    ir::Persistent p{};
    p.kind = ir::PersistentKind::param, p.name = name, p.type = {DType::f32, std::move(shape)};
    p.init = {ir::Initializer::Kind::normal, deviation};
    module_->addPersistent(std::move(p));
    return builder().cast(function_->read(name), DType::f32);
  }
  /// middle + half * tanh(x): in [low, high].
  Value squashed(Value x, double low, double high) {
    ir::Builder b = builder();
    Value y = b.op("tanh", {x});
    y = b.op("mul", {y, b.constant((high - low) / 2, x.dtype())});
    return b.op("add", {y, b.constant((low + high) / 2, x.dtype())});
  }

  bool step() {
    Value x = any();
    int64_t rank = x.rank();
    bool wide = x.dtype() == DType::f32;
    switch (random_.below(14)) {
    case 0: return rank > 0 && wide && add("softmax", {x});
    case 1: {
      if (rank < 1 || !wide || !x.type().dim(-1).is(kWidth)) return false;
      Value weight = parameter({kWidth}, 1);
      return random_.chance(50) ? add("layer_norm", {x, weight, parameter({kWidth}, 1)}, {{"eps", 0.1}})
                                : add("rms_norm", {x, weight}, {{"eps", 0.1}});
    }
    case 2: {
      if (rank < 2 || !x.type().dim(-1).isConstant() || !wide) return false;
      int64_t out = random_.chance(50) ? kWidth : 3;
      Value weight = parameter({out, x.type().dim(-1)}, 0.3);
      return add("linear", random_.chance(50) ? llvm::SmallVector<Value, 3>{x, weight, parameter({out}, 0.3)}
                                              : llvm::SmallVector<Value, 3>{x, weight});
    }
    case 3:
      return rank == 3 && x.type().dim(-1).is(kWidth) &&
             add("attention", {x, x, x}, {{"heads", int64_t(2)}, {"causal", random_.chance(50)}});
    case 4: {
      static constexpr const char *kinds[] = {"sum", "mean", "reduce_max"};
      return rank > 1 && wide &&
             add(random_.of(kinds), {x},
                 {{"dims", std::vector<int64_t>{random_.chance(50) ? -1 : random_.below(rank)}}, {"keep", true}});
    }
    case 5: {
      if (rank < 2) return false;
      std::vector<int64_t> perm;
      for (int64_t i = 0; i < rank; ++i) perm.push_back(i);
      std::swap(perm[random_.below(rank)], perm[random_.below(rank)]);
      return add("transpose", {x}, {{"perm", perm}});
    }
    case 6: return rank == 3 && add("reshape", {x}, {{"shape", Shape{x.shape()[0], x.shape()[1] * x.shape()[2]}}});
    case 7: return rank > 0 && x.type().dim(-1).is(kWidth) && add("split", {x}, {{"sizes", Shape{3, 5}}});
    case 8: return rank > 0 && add("concat", {x, x}, {{"axis", random_.below(rank)}});
    case 9: return wide && add("embedding", {parameter({6, kWidth}, 1), ids_});
    case 10: return random_.chance(30) && add("cast", {x}, {{"to", wide ? DType::bf16 : DType::f32}});
    default: break;
    }
    const ir::OpDef &def = *random_.of(smoothOps());
    llvm::SmallVector<Value, 2> operands;
    for (size_t i = 0; i < def.operands.size(); ++i)
      operands.push_back(squashed(i == 0 ? x : any(), def.sampleLow, def.sampleHigh));
    return add(def.name, operands);
  }

  Random random_;
  std::unique_ptr<ir::Module> module_;
  ir::Function *function_;
  std::vector<Value> pool_;
  Value ids_;
};

bool hasNarrow(const ir::Module &module) {
  for (const ir::Op &op : module.function("forward")->block().ops())
    for (Value v : op.results())
      if (ir::isNarrowFloat(v.dtype())) return true;
  return false;
}

/// "result 1, element 5: 0.25, the reference has 0.5"; absent where all elements agree.
std::optional<std::string> differenceOf(const ir::RefTensor &expected, const HostTensor &found, unsigned result,
                                        double tolerance) {
  double largest = 1;
  for (double v : expected.data)
    if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
  for (int64_t i = 0; i < expected.elements(); ++i) {
    double e = expected.data[i], f = ir::loadElement(found.dtype, found.bytes.data(), i);
    if (!std::isfinite(e) || std::fabs(e) > 1e30) continue; // the ranges of doubles and floats end apart
    if (std::fabs(e - f) <= tolerance * largest) continue;
    return llvm::formatv("result {0}, element {1}: {2}, the reference has {3}", result, i, ir::realLiteral(f),
                         ir::realLiteral(e))
        .str();
  }
  return std::nullopt;
}

} // namespace

std::unique_ptr<ir::Module> randomModule(uint64_t seed, unsigned ops) { return Generator(seed).make(ops); }

llvm::Expected<std::optional<std::string>> findDifference(const ir::Module &module, uint64_t seed, unsigned threads) {
  const ir::Function &function = *module.function("forward");
  Random random(seed ^ 0xda7a);
  ir::SymbolValues symbols;
  symbols["N"] = 1 + random.below(kMaxRows);
  std::vector<ir::RefTensor> refInputs;
  std::vector<HostTensor> inputs;
  for (Value argument : function.block().arguments()) {
    auto tensor = ir::zeros(argument.type(), symbols);
    if (!tensor) return tensor.takeError();
    HostTensor host{argument.dtype(), tensor->shape, {}};
    host.bytes.resize(host.view().bytes());
    for (int64_t i = 0; i < tensor->elements(); ++i) {
      double value = ir::isInteger(argument.dtype()) ? static_cast<double>(random.below(8) - 1) // some outside
                                                     : static_cast<double>(random.below(4001) - 2000) / 1000;
      ir::storeElement(argument.dtype(), host.bytes.data(), i, value);
      tensor->data[i] = ir::loadElement(argument.dtype(), host.bytes.data(), i);
    }
    refInputs.push_back(std::move(*tensor)), inputs.push_back(std::move(host));
  }
  ir::RefState state;
  for (const auto &p : module.persistents()) {
    auto tensor = ir::zeros(p->type, symbols);
    if (!tensor) return tensor.takeError();
    tensor->data = ir::initialValues(*p, seed, tensor->elements());
    state[p->name] = std::move(*tensor);
  }
  auto expected = ir::evaluate(function, refInputs, state, symbols);
  if (!expected) return expected.takeError();

  CompileRequest request;
  request.program.threads = threads;
  auto compiled = compileModule(module.clone(), {}, std::move(request));
  if (!compiled) return compiled.takeError();
  if (auto error = compiled->program->initialize(seed)) return error;
  std::vector<runtime::TensorView> inputViews, outputViews;
  for (HostTensor &t : inputs) inputViews.push_back(t.view());
  std::vector<HostTensor> outputs;
  for (const ir::RefTensor &t : expected->results) {
    outputs.push_back({t.dtype, t.shape, {}});
    outputs.back().bytes.resize(outputs.back().view().bytes());
  }
  for (HostTensor &t : outputs) outputViews.push_back(t.view());
  if (auto error = compiled->program->run("forward", inputViews, outputViews, symbols)) return error;
  double tolerance = hasNarrow(module) ? 0.1 : 2e-4;
  for (unsigned i = 0; i < outputs.size(); ++i)
    if (auto difference = differenceOf(expected->results[i], outputs[i], i, tolerance)) return difference;
  return std::nullopt;
}

namespace {

void removeDead(ir::Function &function) {
  auto ops = function.block().opPointers();
  for (ir::Op *op : llvm::reverse(ops))
    if (!op->def().isTerminator && op->unused()) op->erase();
}

/// A copy that returns only result `keep`.
std::unique_ptr<ir::Module> withOneResult(const ir::Module &module, unsigned keep) {
  auto copy = module.clone();
  ir::Function &function = *copy->function("forward");
  function.setReturns({function.returns()[keep]});
  removeDead(function);
  return copy;
}

/// A copy that returns operand `k` of what is returned; null where that is an input or there are several results.
std::unique_ptr<ir::Module> withEarlierResult(const ir::Module &module, unsigned k) {
  auto copy = module.clone();
  ir::Function &function = *copy->function("forward");
  auto returns = function.returns();
  ir::Op *last = returns.size() == 1 ? returns[0].value.op() : nullptr;
  if (!last || !last->operand(k) || !last->operand(k).op()) return nullptr;
  function.setReturns({{ir::ReturnKind::result, "", last->operand(k)}});
  removeDead(function);
  return copy;
}

/// A copy in which the first result of op number `index` is a new argument; null where it has none to replace.
std::unique_ptr<ir::Module> withArgument(const ir::Module &module, unsigned index) {
  auto copy = module.clone();
  ir::Function &function = *copy->function("forward");
  auto ops = function.block().opPointers();
  ir::Op *op = ops[index];
  if (op->def().isTerminator || op->operands().empty() || op->resultCount() == 0 || !ir::isFloat(op->result().dtype()))
    return nullptr;
  Value argument = function.block().addArgument(op->result().type(), "a" + std::to_string(index));
  op->result().replaceAllUsesWith(argument);
  removeDead(function);
  for (unsigned i = function.block().argumentCount(); i-- > 0;)
    if (function.block().argument(i).unused()) function.block().eraseArgument(i);
  return copy;
}

} // namespace

std::unique_ptr<ir::Module> shrink(std::unique_ptr<ir::Module> module,
                                   llvm::function_ref<bool(const ir::Module &)> fails) {
  auto results = static_cast<unsigned>(module->function("forward")->returns().size());
  for (unsigned i = 0; i < results && results > 1; ++i)
    if (auto smaller = withOneResult(*module, i); fails(*smaller)) {
      module = std::move(smaller);
      break;
    }
  for (bool changed = true; changed;) {
    changed = false;
    for (unsigned k = 0; k < 3 && !changed; ++k)
      if (auto smaller = withEarlierResult(*module, k); smaller && fails(*smaller)) {
        module = std::move(smaller);
        changed = true;
      }
    if (changed) continue;
    auto count = static_cast<unsigned>(module->function("forward")->block().ops().size());
    for (unsigned i = count; i-- > 0 && !changed;)
      if (auto smaller = withArgument(*module, i);
          smaller && smaller->function("forward")->block().ops().size() < count && fails(*smaller)) {
        module = std::move(smaller);
        changed = true;
      }
  }
  return module;
}

} // namespace fusor::frontend
