// Programs from random graphs: fused and unfused on the CPU compute what the float64 reference does.
#include "ir/random/random_graph.h"
#include "ir/verify/verify.h"
#include "passes/context.h"
#include "passes/fusion/fusion.h"
#include "program_harness.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

namespace {
using namespace fusor;
using namespace fusor::ir;
using namespace fusor::test;

HostTensor toHost(const RefTensor &tensor) {
  HostTensor host(tensor.dtype, tensor.shape);
  for (int64_t i = 0; i < tensor.elements(); ++i) host.set(i, tensor.data[i]);
  return host;
}

// The largest difference, relative to the largest value; infinite where one is a NaN and the other is not.
double difference(const RefTensor &want, DType dtype, const char *data) {
  double largest = 1e-3, worst = 0;
  for (double v : want.data)
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  for (int64_t i = 0; i < want.elements(); ++i) {
    double got = loadElement(dtype, data, i);
    if (got == want.data[i] || (std::isnan(got) && std::isnan(want.data[i]))) continue;
    double d = std::abs(got - want.data[i]) / largest;
    worst = std::max(worst, std::isnan(d) ? HUGE_VAL : d);
  }
  return worst;
}

// passes/fusion expects that nothing is dead, as simplify leaves it.
void removeDead(Function &function) {
  auto ops = function.block().opPointers();
  for (Op *op : llvm::reverse(ops))
    if (!op->def().hasSideEffectOrder && op->unused()) op->erase();
}

void compareOnCpu(uint64_t seed, const RandomGraphOptions &options, double tolerance) {
  auto module = randomModule(seed, options);
  Function &function = *module->function("random");
  removeDead(function);
  RandomInputs inputs = randomInputs(function, seed);
  auto want = evaluate(function, inputs.inputs, inputs.state, inputs.symbols);
  ASSERT_TRUE(bool(want)) << llvm::toString(want.takeError());
  auto fused = module->clone();
  passes::PassOptions passOptions;
  passes::PassContext context(passOptions);
  auto changed = passes::fusion(*fused, context);
  ASSERT_TRUE(bool(changed)) << llvm::toString(changed.takeError());

  std::vector<HostTensor> host;
  for (const RefTensor &tensor : inputs.inputs) host.push_back(toHost(tensor));
  llvm::StringMap<std::vector<char>> state;
  for (const auto &entry : inputs.state) state[entry.first()] = toHost(entry.second).bytes;
  for (const Module *version : {module.get(), fused.get()}) {
    if (auto error = verify(*version)) { // whoever made it has tests that say so
      llvm::errs() << "seed " << seed << ": fusion gives an invalid module: " << llvm::toString(std::move(error))
                   << "\n";
      continue;
    }
    SCOPED_TRACE("seed " + std::to_string(seed) + (version == fused.get() ? " fused\n" : "\n") + version->str());
    RunResult got = runOnCpu(*version, "random", host, state, inputs.symbols, 2, /*mayFallBack=*/true);
    ASSERT_EQ(got.results.size(), want->results.size());
    for (size_t i = 0; i < got.results.size(); ++i)
      EXPECT_LE(difference(want->results[i], got.results[i].view.dtype, got.results[i].bytes.data()), tolerance)
          << "result " << i;
    for (const auto &update : want->updates)
      EXPECT_LE(difference(update.second, module->persistent(update.first())->type.dtype,
                           got.persistents[update.first()].data()),
                tolerance)
          << update.first().str();
  }
}

TEST(RandomPrograms, F32) {
  RandomGraphOptions options;
  options.discontinuous = options.narrow = false;
  for (uint64_t seed = 0; seed < 150 && !HasFailure(); ++seed) compareOnCpu(seed, options, 1e-3);
}

TEST(RandomPrograms, Narrow) {
  RandomGraphOptions options;
  options.discontinuous = false;
  for (uint64_t seed = 1000; seed < 1100 && !HasFailure(); ++seed) compareOnCpu(seed, options, 0.08);
}

TEST(RandomPrograms, Dropout) {
  RandomGraphOptions options;
  options.discontinuous = options.narrow = false;
  options.random = true;
  for (uint64_t seed = 2000; seed < 2050 && !HasFailure(); ++seed) compareOnCpu(seed, options, 1e-3);
}

} // namespace
