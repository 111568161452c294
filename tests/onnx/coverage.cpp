// onnx_coverage [--list] [--must FILE] [--device cuda] [FOLDER]: runs the standard node tests and prints the page
// docs/onnx_coverage.md, or with --list one line a test.
#include "tests/onnx/node_tests.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <map>

using namespace fusor::tests;

namespace {

struct Count {
  unsigned of[4] = {0, 0, 0, 0};
  void add(Outcome outcome) { ++of[static_cast<unsigned>(outcome)]; }
  unsigned total() const { return of[0] + of[1] + of[2] + of[3]; }
};

void row(llvm::StringRef what, const Count &c) {
  llvm::outs() << llvm::formatv("| {0} | {1} | {2} | {3} | {4} | {5} |\n", what, c.total(), c.of[0], c.of[1], c.of[2],
                                c.of[3]);
}
void head(llvm::StringRef what) {
  llvm::outs() << "| " << what << " | tests | passed | refused | wrong | crashed |\n|---|---|---|---|---|---|\n";
}

} // namespace

int main(int argc, char **argv) {
  bool list = false;
  std::string folder = nodeTestFolder(), device = "cpu";
  llvm::StringSet<> must;
  for (int i = 1; i < argc; ++i) {
    llvm::StringRef argument = argv[i];
    if (argument == "--list") {
      list = true;
    } else if (argument == "--device" && i + 1 < argc) {
      device = argv[++i];
    } else if (argument == "--must" && i + 1 < argc) {
      auto file = llvm::MemoryBuffer::getFile(argv[++i], true);
      llvm::SmallVector<llvm::StringRef, 0> names;
      if (file) llvm::SplitString((*file)->getBuffer(), names);
      for (llvm::StringRef name : names) must.insert(name);
    } else {
      folder = argument.str();
    }
  }
  if (folder.empty()) {
    llvm::errs() << "error: the node tests are not there; `make test` makes them where pip reaches PyPI\n";
    return 1;
  }
  Count all, direct, expanded, musts;
  std::map<std::string, Count> byOp;
  std::map<int64_t, Count> byOpset;
  for (const std::string &name : nodeTestNames(folder)) {
    if (list && !must.empty() && !must.contains(name)) continue;
    NodeTest t = runNodeTest(folder, name, device);
    all.add(t.outcome);
    (t.isExpanded ? expanded : direct).add(t.outcome);
    if (must.contains(name)) musts.add(t.outcome);
    byOpset[t.opset].add(t.outcome);
    if (!t.isExpanded) byOp[t.op].add(t.outcome);
    if (list)
      llvm::outs() << fusor::tests::name(t.outcome) << "\t" << name << "\t"
                   << llvm::join(llvm::split(t.reason, '\n'), " / ") << "\n";
  }
  if (list) {
    llvm::errs() << llvm::formatv("{0} tests: {1} passed, {2} refused, {3} wrong, {4} crashed\n", all.total(),
                                  all.of[0], all.of[1], all.of[2], all.of[3]);
    return 0;
  }
  llvm::outs() << "# ONNX operators: what the standard node tests say\n\n"
                  "Made by `build/tests/onnx/onnx_coverage >docs/onnx_coverage.md`, on the CPU. Refused: an error "
                  "names the node and the\n"
                  "reason. Expanded tests are an operator written out in others, and are counted apart.\n\n";
  head("set");
  row("all", all), row("direct", direct), row("expanded", expanded);
  if (!must.empty()) row("must list", musts);
  llvm::outs() << "\n## By opset\n\n";
  head("opset");
  for (const auto &[opset, count] : byOpset) row(std::to_string(opset), count);
  llvm::outs() << "\n## Direct tests by operator\n\n";
  head("operator");
  for (const auto &[op, count] : byOp) row(op.empty() ? "(none)" : op, count);
  return 0;
}
