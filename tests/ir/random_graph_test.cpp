#include "ir/graph/builder.h"
#include "ir/ops/op_def.h"
#include "ir/random/random_graph.h"
#include "ir/verify/verify.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace fusor::ir;

namespace {

const Function &randomFunction(const Module &module) { return *module.function("random"); }

RandomGraphOptions everything() { return {.ops = 20, .fp8 = true, .random = true, .loss = true}; }

TEST(RandomGraph, ModulesVerifyAndRun) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    auto module = randomModule(seed, everything());
    auto error = verify(*module);
    ASSERT_FALSE(static_cast<bool>(error)) << llvm::toString(std::move(error)) << module->str();
    RandomInputs in = randomInputs(randomFunction(*module), seed);
    auto result = evaluate(randomFunction(*module), in.inputs, in.state, in.symbols);
    ASSERT_TRUE(static_cast<bool>(result)) << llvm::toString(result.takeError()) << module->str();
    ASSERT_FALSE(result->results.empty());
    EXPECT_TRUE(result->results[0].shape.empty()) << "the loss is a scalar";
    for (const RefTensor &y : result->results)
      for (double v : y.data) ASSERT_LT(std::fabs(v), 1e5) << "seed " << seed << " grows\n" << module->str();
  }
}

TEST(RandomGraph, TheSameSeedIsTheSameModuleAndData) {
  EXPECT_EQ(randomModule(11, everything())->str(), randomModule(11, everything())->str());
  EXPECT_NE(randomModule(11, everything())->str(), randomModule(12, everything())->str());
  auto module = randomModule(11);
  RandomInputs a = randomInputs(randomFunction(*module), 3), b = randomInputs(randomFunction(*module), 3);
  ASSERT_EQ(a.inputs.size(), b.inputs.size());
  for (size_t i = 0; i < a.inputs.size(); ++i) EXPECT_EQ(a.inputs[i].data, b.inputs[i].data);
}

TEST(RandomGraph, CoversTheOpsItClaims) {
  llvm::StringSet<> seen;
  bool symbolic = false, multiUse = false, updates = false;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    auto module = randomModule(seed, everything());
    symbolic |= !module->symbols().empty();
    for (const Op &op : randomFunction(*module).block().ops()) {
      seen.insert(op.name());
      for (Value v : op.results()) multiUse |= v.users().size() > 1;
    }
    for (const ReturnEntry &e : randomFunction(*module).returns()) updates |= e.kind == ReturnKind::update;
  }
  EXPECT_TRUE(symbolic && multiUse && updates);
  for (const char *op : {"add",   "mul",       "tanh",     "gelu",       "floor",    "select",    "cast",
                         "mean",  "sum",       "softmax",  "layer_norm", "rms_norm", "transpose", "reshape",
                         "slice", "pad",       "concat",   "split",      "linear",   "matmul",    "attention",
                         "rope",  "embedding", "quantize", "dequantize", "dropout",  "constant"})
    EXPECT_TRUE(seen.count(op)) << op;
}

TEST(RandomGraph, OptionsAreKept) {
  RandomGraphOptions plain{
      .symbolic = false, .narrow = false, .persistent = false, .contractions = false, .discontinuous = false};
  for (uint64_t seed = 0; seed < 60; ++seed) {
    auto module = randomModule(seed, plain);
    EXPECT_TRUE(module->symbols().empty() && module->persistents().empty());
    for (const Op &op : randomFunction(*module).block().ops()) {
      for (Value v : op.results()) EXPECT_NE(v.dtype(), DType::bf16);
      EXPECT_FALSE(op.is("linear") || op.is("matmul") || op.is("attention") || op.is("floor") || op.is("select"))
          << op.name().str();
    }
  }
}

bool hasOp(const Module &m, llvm::StringRef name) {
  return llvm::any_of(randomFunction(m).block().ops(), [&](const Op &op) { return op.is(name); });
}

TEST(Shrink, LeavesTheOpThatFailsAndLittleElse) {
  unsigned shrunk = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    auto module = randomModule(seed, everything());
    if (!hasOp(*module, "softmax")) continue;
    auto small = shrink(*module, [](const Module &m) { return hasOp(m, "softmax"); });
    ++shrunk;
    EXPECT_TRUE(hasOp(*small, "softmax"));
    auto error = verify(*small);
    ASSERT_FALSE(static_cast<bool>(error)) << llvm::toString(std::move(error));
    EXPECT_EQ(randomFunction(*small).block().ops().size(), 2u) << small->str(); // softmax and return
    EXPECT_EQ(randomFunction(*small).returns().size(), 1u) << small->str();
    EXPECT_TRUE(small->persistents().empty()) << small->str();
  }
  EXPECT_GT(shrunk, 2u);
}

// Two ops of which one feeds the other: both stay, what lies between does not.
TEST(Shrink, KeepsWhatTheFailureNeeds) {
  auto needsBoth = [](const Module &m) { return hasOp(m, "layer_norm") && hasOp(m, "transpose"); };
  for (uint64_t seed = 0; seed < 100; ++seed) {
    auto module = randomModule(seed, everything());
    if (!needsBoth(*module)) continue;
    auto small = shrink(*module, needsBoth);
    EXPECT_TRUE(needsBoth(*small));
    EXPECT_LE(randomFunction(*small).block().ops().size(), 4u) << small->str();
    return;
  }
  FAIL() << "no seed has both ops";
}

} // namespace
