// Random models: imported and fused, and imported and left in small ops, both against the float64 reference.
#include "tests/onnx/evaluate.h"
#include "tests/onnx/model_folder.h"
#include "tests/onnx/random_model.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"
#include <cmath>

namespace fusor::tests {
namespace {

constexpr unsigned kModels = 150;

std::vector<ir::RefTensor> inputsOf(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  const int64_t batch = 1 + static_cast<int64_t>(random() % 3), length = 1 + static_cast<int64_t>(random() % 9);
  std::vector<ir::RefTensor> inputs(3);
  inputs[0].shape = {batch, length, 8}, inputs[1].shape = {batch, length}, inputs[2].shape = {batch, 1, length, length};
  inputs[1].dtype = ir::DType::i64;
  for (ir::RefTensor &t : inputs) {
    int64_t elements = 1;
    for (int64_t dim : t.shape) elements *= dim;
    for (int64_t i = 0; i < elements; ++i)
      t.data.push_back(t.dtype == ir::DType::i64 ? static_cast<double>(i % length == 0 || random() % 3 != 0)
                                                 : static_cast<double>(static_cast<float>(normal(random))));
  }
  return inputs;
}

TEST(RandomModels, FusedAndSmallOpsAgainstTheReference) {
  std::map<std::string, unsigned> lifted;
  for (uint64_t seed = 1; seed <= kModels; ++seed) {
    RandomModel model(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + llvm::join(model.blocks, ", "));
    auto imported = onnx::importBytes(model.builder.bytes(), "random.onnx", "");
    ASSERT_TRUE(static_cast<bool>(imported)) << llvm::toString(imported.takeError());
    const ir::Module &module = *imported->module;
    for (const auto &[op, count] : liftedOps(module)) lifted[op] += count;
    std::vector<ir::RefTensor> inputs = inputsOf(seed);
    auto reference = ir::evaluate(*module.function("forward"), inputs);
    ASSERT_TRUE(static_cast<bool>(reference)) << llvm::toString(reference.takeError());
    const std::vector<double> &wanted = reference->results[0].data;
    const Numbers fused = onCpu(module, inputs, {})[0], small = onCpu(module, inputs, {"lift"})[0];
    ASSERT_EQ(fused.size(), wanted.size());
    ASSERT_EQ(small.size(), wanted.size());
    double largest = 1;
    for (double w : wanted) largest = std::max(largest, std::abs(w));
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_NEAR(small[i], wanted[i], 2e-5 * largest) << "small ops, element " << i << "\n" << module.str();
      ASSERT_NEAR(fused[i], wanted[i], 2e-5 * largest) << "fused, element " << i << "\n" << module.str();
    }
  }
  // What the models are for: each form occurs, and so does each that must not be taken for it.
  for (const char *op : {"attention", "layer_norm", "rms_norm", "gelu", "silu", "linear", "rotary", "softmax", "erf",
                         "sigmoid", "matmul"})
    EXPECT_GE(lifted[op], 1u) << op;
}

} // namespace
} // namespace fusor::tests
