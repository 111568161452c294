// Random graphs: the generator, the comparison, and shrinking.
#include "frontend/api/random_graph.h"
#include "llvm/ADT/StringSet.h"
#include "gtest/gtest.h"

namespace {
using namespace fusor;
using namespace fusor::frontend;

TEST(RandomGraph, ASeedIsAModule) {
  EXPECT_EQ(randomModule(7, 12)->str(), randomModule(7, 12)->str());
  EXPECT_NE(randomModule(7, 12)->str(), randomModule(8, 12)->str());
}

TEST(RandomGraph, ReachesManyOps) {
  llvm::StringSet<> seen;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    auto module = randomModule(seed, 16);
    for (const ir::Op &op : module->function("forward")->block().ops()) seen.insert(op.name());
  }
  for (const char *name : {"attention", "layer_norm", "linear", "softmax", "split", "concat", "transpose", "embedding",
                           "cast", "reduce_max", "gelu", "div"})
    EXPECT_TRUE(seen.contains(name)) << name;
  EXPECT_GT(seen.size(), 35u);
}

TEST(RandomGraph, FusedProgramsComputeTheReference) {
  for (uint64_t seed = 5000; seed < 5040; ++seed) {
    auto difference = findDifference(*randomModule(seed, 4 + seed % 16), seed, 1);
    ASSERT_TRUE(bool(difference)) << llvm::toString(difference.takeError());
    EXPECT_FALSE(difference->has_value()) << "seed " << seed << ": " << **difference;
  }
}

TEST(RandomGraph, ShrinksToWhatFails) {
  // "Fails" where there is a softmax: everything else can go.
  auto hasSoftmax = [](const ir::Module &m) { return m.str().find("softmax ") != std::string::npos; };
  for (uint64_t seed = 0; seed < 50; ++seed) {
    auto module = randomModule(seed, 20);
    if (!hasSoftmax(*module)) continue;
    auto small = shrink(std::move(module), hasSoftmax);
    EXPECT_TRUE(hasSoftmax(*small));
    EXPECT_LE(small->function("forward")->block().ops().size(), 4u) << small->str();
  }
}

} // namespace
