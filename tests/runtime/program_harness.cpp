#include "program_harness.h"
#include "frontend/text/parser.h"
#include "passes/context.h"
#include "passes/fusion/fusion.h"
#include "runtime/cpu/cluster_check.h"
#include <cmath>
#include <random>

namespace fusor::test {

using namespace ir;
using runtime::TensorView;

std::unique_ptr<Module> parseOrFail(llvm::StringRef text) {
  auto module = frontend::parseModule(text, "test.fir");
  if (module) return std::move(*module);
  ADD_FAILURE() << llvm::toString(module.takeError());
  return nullptr;
}

HostTensor::HostTensor(DType dtype, llvm::ArrayRef<int64_t> shape) {
  view.dtype = dtype;
  view.shape.assign(shape.begin(), shape.end());
  bytes.assign(view.bytes(), 0);
  view.data = bytes.data();
}
HostTensor::HostTensor(const HostTensor &other) { *this = other; }
HostTensor &HostTensor::operator=(const HostTensor &other) {
  view = other.view;
  bytes = other.bytes;
  view.data = bytes.data();
  return *this;
}

namespace {

RefTensor toReference(const HostTensor &tensor) {
  RefTensor r;
  r.dtype = tensor.view.dtype;
  r.shape.assign(tensor.view.shape.begin(), tensor.view.shape.end());
  for (int64_t i = 0; i < tensor.view.elements(); ++i) r.data.push_back(tensor.at(i));
  return r;
}

HostTensor randomTensor(const TensorType &type, const CpuCase &test, std::mt19937 &random) {
  llvm::SmallVector<int64_t, 4> shape;
  for (const Dim &dim : type.shape) shape.push_back(*dim.evaluate(test.symbols));
  HostTensor tensor(type.dtype, shape);
  std::uniform_real_distribution<double> real(test.low, test.high);
  std::uniform_int_distribution<int64_t> integer(0, test.integers - 1);
  for (int64_t i = 0; i < tensor.view.elements(); ++i)
    tensor.set(i, type.dtype == DType::i1 ? random() % 3 != 0
                  : isFloat(type.dtype)   ? real(random)
                                          : static_cast<double>(integer(random)));
  return tensor;
}

void compare(const std::string &what, const RefTensor &want, const TensorView &view, const char *data,
             double tolerance) {
  double largest = 0;
  for (double v : want.data)
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  double relative = isNarrowFloat(view.dtype) ? runtime::checkTolerance(view.dtype) : tolerance;
  double allowed = isFloat(view.dtype) ? relative * (largest + 1e-3) : 0;
  ASSERT_EQ(want.elements(), view.elements()) << what;
  for (int64_t i = 0; i < want.elements(); ++i) {
    double got = loadElement(view.dtype, data, i);
    if (got == want.data[i] || (std::isnan(got) && std::isnan(want.data[i]))) continue;
    ASSERT_LE(std::abs(got - want.data[i]), allowed)
        << what << " " << view.typeText() << " element " << i << ": " << got << ", not " << want.data[i];
  }
}

} // namespace

RunResult runOnCpu(const Module &module, llvm::StringRef function, const std::vector<HostTensor> &inputs,
                   const llvm::StringMap<std::vector<char>> &persistents, const SymbolValues &symbols, unsigned threads,
                   bool mayFallBack) {
  RunResult result;
  runtime::CompileOptions options;
  options.threads = threads;
  options.strict = !mayFallBack;
  options.symbols = symbols;
  auto program = runtime::compile(module.clone(), Target(), options);
  if (!program) {
    ADD_FAILURE() << llvm::toString(program.takeError()) << "\n" << module.str();
    return result;
  }
  for (const auto &entry : persistents)
    if (auto error = (*program)->writePersistent(entry.first(), entry.second))
      ADD_FAILURE() << llvm::toString(std::move(error));
  auto types = (*program)->resultTypes(function, symbols);
  if (!types) {
    ADD_FAILURE() << llvm::toString(types.takeError());
    return result;
  }
  for (const TensorView &type : *types) {
    result.results.emplace_back(type.dtype, type.shape);
    std::fill(result.results.back().bytes.begin(), result.results.back().bytes.end(), char(0x5a));
  }
  std::vector<TensorView> in, out;
  for (const HostTensor &tensor : inputs) in.push_back(tensor.view);
  for (const HostTensor &tensor : result.results) out.push_back(tensor.view);
  if (auto error = (*program)->run(function, in, out, symbols))
    ADD_FAILURE() << llvm::toString(std::move(error)) << module.str();
  for (const auto &persistent : module.persistents()) {
    std::vector<char> bytes(*(*program)->persistentBytes(persistent->name));
    if (auto error = (*program)->readPersistent(persistent->name, bytes))
      ADD_FAILURE() << llvm::toString(std::move(error));
    result.persistents[persistent->name] = std::move(bytes);
  }
  return result;
}

void expectMatchesReference(const CpuCase &test) {
  auto module = parseOrFail(test.text);
  ASSERT_TRUE(module);
  auto fused = module->clone();
  passes::PassOptions options;
  passes::PassContext context(options);
  auto changed = passes::fusion(*fused, context);
  ASSERT_TRUE(bool(changed)) << llvm::toString(changed.takeError());
  // A narrow value that lies between two roundings goes either way, and f32 results see that.
  bool isNarrow = llvm::StringRef(test.text).contains("bf16") || llvm::StringRef(test.text).contains("f16");
  double tolerance = isNarrow ? std::max(test.tolerance, 4e-3) : test.tolerance;
  std::mt19937 random(17);
  for (const auto &function : module->functions()) {
    std::vector<HostTensor> inputs;
    std::vector<RefTensor> references;
    for (Value argument : function->block().arguments()) {
      inputs.push_back(randomTensor(argument.type(), test, random));
      references.push_back(toReference(inputs.back()));
    }
    llvm::StringMap<std::vector<char>> persistents;
    RefState state;
    for (const auto &persistent : module->persistents()) {
      if (persistent->kind != PersistentKind::param && persistent->kind != PersistentKind::state) continue;
      HostTensor tensor = randomTensor(persistent->type, test, random);
      persistents[persistent->name] = tensor.bytes;
      state[persistent->name] = toReference(tensor);
    }
    auto want = evaluate(*function, references, state, test.symbols);
    ASSERT_TRUE(bool(want)) << llvm::toString(want.takeError());
    for (const Module *version : {module.get(), fused.get()}) {
      SCOPED_TRACE((version == fused.get() ? "fused:\n" : "unfused:\n") + version->str());
      RunResult one = runOnCpu(*version, function->name(), inputs, persistents, test.symbols, 1, test.mayFallBack);
      RunResult two = runOnCpu(*version, function->name(), inputs, persistents, test.symbols, 2, test.mayFallBack);
      ASSERT_EQ(one.results.size(), want->results.size());
      for (size_t i = 0; i < one.results.size(); ++i) {
        EXPECT_EQ(one.results[i].bytes, two.results[i].bytes) << "result " << i << " depends on the number of threads";
        compare("result " + std::to_string(i), want->results[i], one.results[i].view, one.results[i].bytes.data(),
                tolerance);
      }
      for (const auto &update : want->updates) {
        const std::vector<char> &bytes = one.persistents[update.first()];
        EXPECT_EQ(bytes, two.persistents[update.first()]) << update.first().str();
        TensorView view;
        view.dtype = module->persistent(update.first())->type.dtype;
        view.shape.assign(update.second.shape.begin(), update.second.shape.end());
        compare("@" + update.first().str(), update.second, view, bytes.data(), tolerance);
      }
    }
  }
}

} // namespace fusor::test
