// Random graphs: every kernel of their fusions in the emulator against the reference.
#include "ir/random/random_graph.h"
#include "tests/codegen/kernel_checker.h"
#include "gtest/gtest.h"
#include <cstdlib>

using namespace fusor;
using namespace fusor::codegen::tests;

namespace {

TEST(Random, KernelsOfRandomGraphs) {
  KernelChecker checker;
  KernelChecker::Options options;
  options.tolerance = 8;    // sums that cancel
  options.mayRefuse = true; // arg_reduce and reductions over middle dims have no kernel
  options.inPlaceToo = true;
  const char *from = std::getenv("FUSOR_RANDOM_FIRST"); // another range of seeds, by hand
  uint64_t first = from ? std::strtoull(from, nullptr, 10) : 1;
  for (uint64_t seed = first; seed < first + 40; ++seed) {
    auto module = ir::randomModule(seed, {.ops = 12, .random = true, .discontinuous = false});
    fuse(*module);
    checker.add(std::move(module), {{{"B", 1}}, {{"B", 5}}}, options);
  }
  checker.run();
  unsigned taken = 0, refused = 0;
  for (const auto *kernels : checker.kernels()) taken += kernels->fusions.size(), refused += kernels->refused.size();
  RecordProperty("fusions", static_cast<int>(taken));
  RecordProperty("refused", static_cast<int>(refused));
  EXPECT_GT(taken, 10 * refused) << refused << " of " << taken + refused << " fusions have no kernel";
}

} // namespace
