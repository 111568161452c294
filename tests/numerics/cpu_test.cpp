// The CPU backend against the float64 reference: every op, dtype and ragged shape of the table. Random functions and whole
// programs are in tests/runtime.
#include "tests/numerics/every_op.h"
#include "tests/numerics/on_cpu.h"
#include "tests/support/tolerance.h"
#include <cmath>

using namespace fusor::ir;
using namespace fusor::tests;

namespace {

double largest(llvm::ArrayRef<RefTensor> tensors) {
  double most = 1;
  for (const RefTensor &t : tensors)
    for (double v : t.data)
      if (std::isfinite(v)) most = std::max(most, std::fabs(v));
  return most;
}
int64_t longestDim(llvm::ArrayRef<RefTensor> tensors) {
  int64_t most = 1;
  for (const RefTensor &t : tensors)
    for (int64_t dim : t.shape) most = std::max(most, dim);
  return most;
}

/// "" where the CPU's results are the reference's.
std::string difference(const RefResult &got, const RefResult &want, llvm::ArrayRef<RefTensor> inputs) {
  double magnitude = std::max(largest(inputs), largest(want.results));
  auto tolerance = [&](DType dtype) { return toleranceFor(dtype, longestDim(inputs), magnitude); };
  if (got.results.size() != want.results.size()) return "another number of results";
  for (size_t i = 0; i < want.results.size(); ++i)
    if (auto same = closeTo(got.results[i], want.results[i], tolerance(want.results[i].dtype)); !same)
      return "result " + std::to_string(i) + ": " + same.message();
  for (const auto &entry : want.updates) {
    auto it = got.updates.find(entry.first());
    if (it == got.updates.end()) return "@" + entry.first().str() + " was not updated";
    if (auto same = closeTo(it->second, entry.second, tolerance(entry.second.dtype)); !same)
      return "@" + entry.first().str() + ": " + same.message();
  }
  return "";
}

std::string problem(const Module &module, const RandomInputs &inputs, CpuOptions options) {
  auto want = evaluate(*module.functions()[0], inputs.inputs, inputs.state, inputs.symbols);
  if (!want) return "reference: " + llvm::toString(want.takeError());
  auto got = runOnCpu(module, inputs, options);
  if (!got) return "CPU: " + llvm::toString(got.takeError());
  return difference(got->result, *want, inputs.inputs);
}

class OnCpu : public EveryOp {};

// FP8 values have no host form with a scale: quantize and dequantize are tested together, in the random functions.
bool isScaled(const OpCase &c) {
  auto scaled = [](const TensorType &t) { return t.granularity != Granularity::none; };
  for (const auto &type : c.types)
    if (type && scaled(*type)) return true;
  auto module = c.module();
  for (const ReturnEntry &entry : module->functions()[0]->returns())
    if (scaled(entry.value.type())) return true;
  return false;
}

TEST_P(OnCpu, MatchesTheReference) {
  for (Sizes sizes : {Sizes::small, Sizes::ragged})
    forEachCase(sizes, [&](const OpCase &c) {
      if (isScaled(c)) return;
      RandomInputs inputs{c.inputs, {}, {}};
      std::string text = problem(*c.module(), inputs, {.threads = 2});
      EXPECT_EQ(text, "");
    });
}

INSTANTIATE_TEST_SUITE_P(Table, OnCpu, testing::ValuesIn(opsWhere([](const OpDef &d) { return !isStructural(d); })),
                         opName);

} // namespace
