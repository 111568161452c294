// `fusor report`, run as a user runs it.
#include "tests/report/small_dump.h"
#include "llvm/Support/JSON.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <sys/wait.h>

namespace {

int fusorReport(const TemporaryFolder &out, const std::string &arguments) {
  std::string command =
      FUSOR_BINARY_DIR "/fusor report " + arguments + " >" + out.path("out") + " 2>" + out.path("err");
  int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ReportCommand, WritesAPageAndSaysWhere) {
  fusor::tests::SmallDump dump;
  TemporaryFolder out;
  ASSERT_EQ(fusorReport(out, dump.path()), 0) << out.read("err");
  std::string page = dump.folder.read("report.html");
  EXPECT_NE(page.find("<!DOCTYPE html>"), std::string::npos);
  EXPECT_EQ(out.read("out").find(dump.path() + "/report.html: "), 0u) << out.read("out");

  ASSERT_EQ(fusorReport(out, dump.path() + " --json -o " + out.path("page.html")), 0) << out.read("err");
  auto line = llvm::json::parse(out.read("out"));
  ASSERT_TRUE(bool(line)) << llvm::toString(line.takeError());
  EXPECT_EQ(line->getAsObject()->getString("file").getValueOr(""), out.path("page.html"));
  EXPECT_EQ(line->getAsObject()->getInteger("bytes").getValueOr(0), static_cast<int64_t>(out.read("page.html").size()));
  EXPECT_TRUE(out.read("page.html") == page) << "the same folder gives the same page";
}

TEST(ReportCommand, WrongFoldersAre1AndUnwritablePagesAre74) {
  TemporaryFolder out;
  EXPECT_EQ(fusorReport(out, out.path()), 1);
  EXPECT_NE(out.read("err").find("error: " + out.path()), std::string::npos) << out.read("err");
  EXPECT_EQ(fusorReport(out, out.path("absent")), 1);
  EXPECT_EQ(fusorReport(out, ""), 64);
  fusor::tests::SmallDump dump;
  EXPECT_EQ(fusorReport(out, dump.path() + " -o /dev/full"), 74);
  EXPECT_EQ(fusorReport(out, dump.path() + " -o " + out.path("no/such/folder.html")), 74);
  EXPECT_NE(out.read("err").find("error: "), std::string::npos);
  dump.folder.write("steps.json", "[{");
  EXPECT_EQ(fusorReport(out, dump.path()), 1);
  EXPECT_EQ(out.read("out"), "");
}

} // namespace
