// The standard node tests of the `onnx` package: a folder each, NAME/model.onnx with
// test_data_set_0/{input,output}_<i>.pb.
#pragma once
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace fusor::tests {

enum class Outcome : unsigned char {
  passed,
  refused, // the importer, or the compiler, says why it does not take it
  wrong,   // other results than expected
  crashed, // or longer than kSecondsEach
};
llvm::StringRef name(Outcome outcome);

struct NodeTest {
  std::string test, op; // op: what it is about, the operator of its first node
  int64_t opset = 0;
  bool isExpanded = false; // an operator written out in others
  Outcome outcome = Outcome::crashed;
  std::string reason; // of the last three
};

/// Where cmake/setup/onnx.sh puts them; empty where it could not.
std::string nodeTestFolder();
/// Names of all of them, sorted.
std::vector<std::string> nodeTestNames(llvm::StringRef folder);
/// Runs one, in a process of its own.
NodeTest runNodeTest(llvm::StringRef folder, llvm::StringRef test, llvm::StringRef device = "cpu");

} // namespace fusor::tests
