// The page in headless Chromium, used as a reader uses it.
#include "frontend/report/report.h"
#include "tests/report/browser.h"
#include "tests/report/small_dump.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cstdlib>

namespace fusor {
namespace {

/// Skips where Chromium is absent; else makes the page of `folder` and opens it.
#define OPEN_PAGE(browser, folder, ...)                                                                                \
  auto program = tests::Browser::program();                                                                            \
  if (!program) GTEST_SKIP() << "no Chromium (Debian: chromium-headless-shell)";                                       \
  auto written = frontend::writeReport(folder);                                                                        \
  ASSERT_TRUE(bool(written)) << llvm::toString(written.takeError());                                                   \
  tests::Browser browser(*program __VA_OPT__(, ) __VA_ARGS__);                                                         \
  ASSERT_FALSE(HasFailure());                                                                                          \
  browser.open(written->path)

void expectNoComplaint(const tests::Browser &browser) {
  for (const std::string &complaint : browser.complaints()) ADD_FAILURE() << complaint;
}

#define EXPECT_SHOWS(text, part)                                                                                       \
  do {                                                                                                                 \
    std::string said = text;                                                                                           \
    EXPECT_NE(said.find(part), std::string::npos) << said;                                                             \
  } while (false)

const char *const kPanel = "document.getElementById('panel').textContent";

TEST(ReportBrowser, AClickOnANodeShowsItsIrItsSourceAndItsLaunch) {
  tests::SmallDump dump;
  OPEN_PAGE(page, dump.path());
  page.click("[data-node='1']");
  EXPECT_EQ(page.text("document.querySelector('#panel h2').textContent"), "linear_gelu");
  EXPECT_SHOWS(page.text("document.querySelector('[data-field=ir]').textContent"), "%y = gelu %blocks.0.fc");
  EXPECT_EQ(page.text("document.querySelector('[data-source] pre').textContent"),
            "extern \"C\" __global__ void k() {}");
  EXPECT_EQ(page.text("document.querySelector('[data-source] .t-keyword').textContent"), "extern") << "highlighted";
  for (const char *part :
       {"ceil(B / 8)", "registers40", "why not FP8computes in f32", "one contraction kernel", "two.cpp:7"})
    EXPECT_SHOWS(page.text(kPanel), part);
  page.click("#panel summary:not([open])");
  // Before fusion there are two ops; each says what it became.
  page.click("[data-side=before]");
  page.click("[data-node='2']");
  EXPECT_SHOWS(page.text(kPanel), "Became part of linear_gelu");
  expectNoComplaint(page);
}

TEST(ReportBrowser, WhatIsMissingIsNotMeasured) {
  tests::SmallDump dump;
  for (const char *file : {"steps.json", "gemms.json", "plan.json", "fusions.json", "trace.json", "modules/index.json"})
    llvm::sys::fs::remove(dump.folder.path(file));
  llvm::sys::fs::remove_directories(dump.folder.path("kernels"));
  dump.folder.write("dump.json", R"({"format": 1})");
  OPEN_PAGE(page, dump.path());
  EXPECT_EQ(page.text("document.querySelector('[data-fact=step_ms]').textContent"), "not measured");
  EXPECT_EQ(page.text("document.querySelector('[data-fact=kernels]').textContent"), "not measured");
  for (const char *tab : {"timeline", "memory", "fp8", "gemms", "kernels", "decisions", "passes"}) {
    page.click(std::string("#tab-") + tab);
    EXPECT_NE(page.text(std::string("document.getElementById('view-") + tab + "').textContent"), "") << tab;
  }
  expectNoComplaint(page);
}

TEST(ReportBrowser, HostileNamesRunNothing) {
  tests::SmallDump dump;
  const std::string evil = "</script><img src=x onerror=window.evil=1><script>window.evil=1</script>";
  std::string quoted = "\"" + evil + "\"";
  dump.folder.write("modules/02_fusion.fir", "func @forward(%x: f32[4]) -> f32[4] {\n  %" + quoted +
                                                 " = gelu %x : f32[4]\n" + "  return %" + quoted + "\n}\n");
  dump.folder.write("dump.json", "{\"format\": 1, \"device\": " + quoted + ", \"config\": " + quoted +
                                     ", \"verb\": " + quoted + "}");
  dump.folder.write("steps.json", "[{\"name\": " + quoted + ", \"kind\": " + quoted + ", \"layer\": " + quoted +
                                      ", \"ir\": " + quoted + ", \"ms\": 1, \"writes\": [" + quoted + "]}]");
  dump.folder.write("fusions.json", "[{\"kind\": " + quoted + ", \"rule\": " + quoted + ", \"reason\": " + quoted +
                                        ", \"subject\": " + quoted + "}]");
  dump.folder.write("kernels/linear_gelu__f32/kernel.cu", evil);
  OPEN_PAGE(page, dump.path());
  page.click("[data-node='1']");
  EXPECT_SHOWS(page.text(kPanel), evil);
  for (const char *tab : {"timeline", "memory", "gemms", "kernels", "decisions"}) {
    page.click(std::string("#tab-") + tab);
    page.evaluate("document.querySelectorAll('tr.pick').forEach(row => row.click())");
  }
  EXPECT_EQ(page.text("String(window.evil)"), "undefined");
  EXPECT_EQ(page.number("document.images.length"), 0);
  expectNoComplaint(page);
}

TEST(ReportBrowser, ANarrowWindowDoesNotScrollSideways) {
  tests::SmallDump dump;
  constexpr int kWidth = 400;
  OPEN_PAGE(page, dump.path(), kWidth, 800);
  page.click("[data-node='1']");
  for (const char *tab : {"graph", "timeline", "memory", "fp8", "gemms", "kernels", "decisions", "passes"}) {
    page.click(std::string("#tab-") + tab);
    EXPECT_LE(page.number("document.documentElement.scrollWidth"), kWidth) << tab;
  }
  expectNoComplaint(page);
}

TEST(ReportBrowser, TheKeyboardReachesNodesTabsAndRows) {
  tests::SmallDump dump;
  OPEN_PAGE(page, dump.path());
  page.evaluate("document.querySelector(\"[data-node='1']\").focus()");
  page.press("Enter");
  EXPECT_EQ(page.text("document.querySelector('#panel h2').textContent"), "linear_gelu");
  page.evaluate("document.getElementById('tab-graph').focus()");
  page.press("ArrowRight");
  EXPECT_EQ(page.text("document.activeElement.id"), "tab-timeline");
  page.evaluate("document.querySelector('#view-timeline tr.pick').focus()");
  page.evaluate("document.getElementById('panel').replaceChildren()");
  page.press("Enter");
  EXPECT_SHOWS(page.text(kPanel), "linear_gelu");
  expectNoComplaint(page);
}

/// The number of a text like "95" or "1,728".
int64_t counted(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ','), text.end());
  return std::atoll(text.c_str());
}

/// The questions of the issue, asked of the page of a real run and held against the files of its dump.
TEST(ReportBrowser, AnswersOfARealRunInFp8) {
  auto program = tests::Browser::program();
  if (!program) GTEST_SKIP() << "no Chromium (Debian: chromium-headless-shell)";
  TemporaryFolder folder;
  std::string command = FUSOR_BINARY_DIR "/fusor train --config tiny --precision fp8 --steps 2 --batch 4 --device cpu "
                                         "--quiet --dump " +
                        folder.path("dump") + " >" + folder.path("out") + " 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0) << folder.read("out");
  const std::string ofTheRun = folder.read("dump/report.html");
  auto written = frontend::writeReport(folder.path("dump"));
  ASSERT_TRUE(bool(written)) << llvm::toString(written.takeError());
  EXPECT_TRUE(ofTheRun == folder.read("dump/report.html")) << "the run has written the page already";
  auto steps = llvm::cantFail(llvm::json::parse(folder.read("dump/steps.json")));
  const llvm::json::Object *longest = nullptr;
  for (const llvm::json::Value &step : *steps.getAsArray())
    if (!longest || step.getAsObject()->getNumber("ms").getValueOr(0) > longest->getNumber("ms").getValueOr(0))
      longest = step.getAsObject();
  ASSERT_TRUE(longest);

  tests::Browser page(*program);
  ASSERT_FALSE(HasFailure());
  page.open(written->path);
  const int64_t launches = static_cast<int64_t>(steps.getAsArray()->size());

  // How many kernels has a step?
  EXPECT_EQ(counted(page.text("document.querySelector('[data-fact=kernels]').textContent")), launches);
  page.click("#tab-timeline");
  EXPECT_EQ(counted(page.text("document.querySelector('[data-field=kernels]').textContent")), launches);

  // Which took longest?
  const std::string name = longest->getString("name").getValueOr("").str();
  EXPECT_EQ(page.text("document.querySelector('[data-field=longest]').textContent"), name);
  EXPECT_SHOWS(page.text("document.querySelector('[data-table=launches] tbody tr').textContent"), name);

  // What does it do? Its IR is the fusion's that the dump has, and there is a CUDA source.
  page.click("[data-field=longest]");
  std::string ir = longest->getString("ir").getValueOr("").str();
  std::string lastLine = llvm::StringRef(ir).rtrim().rsplit('\n').second.split(" : ").first.rtrim().str();
  ASSERT_NE(lastLine, "");
  EXPECT_SHOWS(page.text("document.querySelector('[data-field=ir]').textContent"), lastLine);
  EXPECT_SHOWS(page.text("document.querySelector('[data-source] pre').textContent"), "__global__");

  // Why is the head's GEMM not in FP8?
  page.click("#tab-gemms");
  EXPECT_SHOWS(page.text("document.querySelector('#view-gemms .summary').textContent"), "24 in fp8");
  EXPECT_EQ(page.text("document.querySelector('[data-fact=gemms]').textContent"), "24 fp8, 3 f32");
  page.evaluate("[...document.querySelectorAll('[data-table=gemms] tr.pick')]"
                ".find(row => row.textContent.includes('logits')).setAttribute('data-wanted', '')");
  page.click("tr[data-wanted] td:nth-child(2)");
  EXPECT_EQ(page.text("document.querySelector('[data-field=why-not-fp8]').textContent"),
            "computes in f32, FP8 takes the place of bf16");

  // Every node is a launch that the graph can show, by keyboard too: search finds it.
  page.click("#tab-graph");
  page.click("input[type=search]");
  page.evaluate("document.querySelector('input[type=search]').value = 'cross_entropy_grad'");
  page.press("Enter");
  EXPECT_SHOWS(page.text("document.querySelector('#panel h2').textContent"), "cross_entropy_grad");
  // A CPU has no registers: not 0.
  EXPECT_SHOWS(page.text(kPanel), "registersnot measured");
  for (const char *tab : {"memory", "fp8", "kernels", "decisions", "passes"}) page.click(std::string("#tab-") + tab);
  EXPECT_SHOWS(page.text("document.querySelector('#view-fp8').textContent"), "24 tensors over 2 steps");
  EXPECT_SHOWS(page.text("document.querySelector('#view-memory .about').textContent"), "the peak");
  expectNoComplaint(page);
}

} // namespace
} // namespace fusor
