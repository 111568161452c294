// The must list of the standard node tests, where they could be made: all pass, and nothing of the whole suite is wrong
// or crashes.
#include "tests/onnx/node_tests.h"
#include "gtest/gtest.h"

namespace fusor::tests {
namespace {

TEST(NodeTests, NothingIsWrongAndNothingCrashes) {
  std::string folder = nodeTestFolder();
  if (folder.empty()) GTEST_SKIP() << "no node tests: pip could not fetch the onnx package (cmake/setup/onnx.sh)";
  unsigned passed = 0, refused = 0;
  for (const std::string &test : nodeTestNames(folder)) {
    NodeTest result = runNodeTest(folder, test);
    passed += result.outcome == Outcome::passed, refused += result.outcome == Outcome::refused;
    EXPECT_TRUE(result.outcome == Outcome::passed || result.outcome == Outcome::refused)
        << test << " " << name(result.outcome).str() << ": " << result.reason;
  }
  EXPECT_GT(passed, refused);
}

} // namespace
} // namespace fusor::tests
