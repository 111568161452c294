// The page of gpt2's training step in FP8: its real modules and kernels, with made-up times. How large, how fast, how
// it opens.
#include "frontend/report/graph.h"
#include "frontend/report/report.h"
#include "frontend/text/parser.h"
#include "tests/report/browser.h"
#include "tests/runtime/temporary_folder.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <cstdlib>

namespace fusor {
namespace {

using llvm::json::Array;
using llvm::json::Object;

/// dump.json, the module before and after fusion, the kernels of `fusor emit`, the decisions of `fusor explain`, and
/// for each node after fusion a launch of the kernels that are called like it.
void writeGpt2Dump(const TemporaryFolder &folder) {
  const std::string fusor = FUSOR_BINARY_DIR "/fusor ", config = " config:gpt2 --precision fp8 --pipeline train ";
  llvm::sys::fs::create_directory(folder.path("modules"));
  auto run = [&](const std::string &command) { ASSERT_EQ(std::system(command.c_str()), 0) << command; };
  run(fusor + "opt" + config + "--print-after layout -o " + folder.path("modules/13_fusion.fir") + " >" +
      folder.path("modules/12_layout.fir"));
  run(fusor + "emit" + config + "--arch-tier simt --quiet --out " + folder.path("kernels") + " >/dev/null");
  run(fusor + "explain" + config + "--json >" + folder.path("decisions"));

  std::string text = folder.read("modules/13_fusion.fir");
  auto module = llvm::cantFail(frontend::parseModule(text, "13_fusion.fir"));
  std::vector<std::string> kernels;
  std::error_code code;
  for (llvm::sys::fs::directory_iterator it(folder.path("kernels"), code), end; it != end && !code; it.increment(code))
    kernels.push_back(llvm::sys::path::filename(it->path()).str());
  std::sort(kernels.begin(), kernels.end());

  Array steps;
  double ms = 0.01;
  for (const frontend::GraphNode &node : frontend::graphOf(*module->function("train_step"))) {
    if (node.kind == "input") continue;
    Array writes;
    for (const std::string &name : node.results) writes.push_back(name);
    Object step{{"name", node.name}, {"fusion", node.name}, {"kind", node.kind},  {"layer", node.layer},
                {"ir", node.text},   {"bytes", 1 << 20},    {"ms", ms *= 1.0001}, {"writes", std::move(writes)}};
    for (const std::string &kernel : kernels)
      if (llvm::StringRef(kernel).startswith(node.name + "__")) step["kernel"] = kernel;
    steps.push_back(std::move(step));
  }
  folder.write("steps.json", llvm::formatv("{0}", llvm::json::Value(std::move(steps))).str());
  std::string decisions;
  llvm::SmallVector<llvm::StringRef, 0> lines;
  std::string listed = folder.read("decisions");
  llvm::StringRef(listed).trim().split(lines, '\n');
  for (llvm::StringRef line : lines) decisions += (decisions.empty() ? "[" : ",\n") + line.str();
  folder.write("fusions.json", decisions + "]");
  folder.write("dump.json",
               R"({"format": 1, "verb": "train", "config": "gpt2", "precision": "fp8", "function": "train_step"})");
}

TEST(ReportGpt2, IsSmallAndOpensFastWithItsLayersCollapsed) {
  TemporaryFolder folder;
  ASSERT_NO_FATAL_FAILURE(writeGpt2Dump(folder));
  auto written = frontend::writeReport(folder.path());
  ASSERT_TRUE(bool(written)) << llvm::toString(written.takeError());
  constexpr size_t kLargest = 3000000;
  EXPECT_LE(written->bytes, kLargest);
  RecordProperty("bytes", static_cast<int>(written->bytes));

  auto program = tests::Browser::program();
  if (!program) GTEST_SKIP() << "no Chromium (Debian: chromium-headless-shell)";
  tests::Browser page(*program);
  double ms = page.open(written->path);
  constexpr double kSlowestMs = 2000;
  EXPECT_LT(ms, kSlowestMs);
  RecordProperty("load_ms", static_cast<int>(ms));
  EXPECT_EQ(page.number("document.querySelectorAll('[data-group^=\"forward/blocks.\"]').length"), 12);
  EXPECT_EQ(page.number("document.querySelectorAll('[data-group^=\"backward/blocks.\"]').length"), 12);
  EXPECT_LT(page.number("document.querySelectorAll('[data-node]').length"), 30) << "outside of layers";
  page.evaluate("document.querySelector('[aria-label=\"Open all layers\"]').click()");
  EXPECT_GT(page.number("document.querySelectorAll('[data-node]').length"), 300);
  for (const std::string &complaint : page.complaints()) ADD_FAILURE() << complaint;
}

} // namespace
} // namespace fusor
