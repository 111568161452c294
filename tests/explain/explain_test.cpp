// Runs tests/explain/*.fir: "// RUN: fusor explain [config:NAME] FLAGS" is run as a user does, in this folder; without
// a config the module is the file itself.
#include "tests/frontend/command.h"
#include "tests/support/filecheck.h"
#include "tests/support/fir_cases.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace fusor::tests {
namespace {

// The command from another folder: what it prints names files as they were given, so nothing of this machine is in it.
Ran explainHere(const std::string &arguments) {
  return runFusor("explain " + arguments, "cd " FUSOR_SOURCE_DIR "/tests/explain &&");
}

llvm::Expected<std::string> runExplainCase(const FirRun &run) {
  bool isOfConfig = llvm::any_of(run.arguments, [](llvm::StringRef a) { return a.startswith("config:"); });
  std::string arguments = isOfConfig ? "" : llvm::sys::path::filename(run.path).str() + " ";
  Ran ran = explainHere(arguments + llvm::join(run.arguments, " "));
  if (ran.exit != 0) return llvm::createStringError(llvm::inconvertibleErrorCode(), ran.err);
  return ran.out;
}

const unsigned kCases = registerFirCases("tests/explain", "ExplainCases", runExplainCase);

TEST(Explain, CasesAreFound) { EXPECT_GE(kCases, 3u); }

struct Line {
  std::string kind, rule, function, subject, location;
  int64_t bytes = 0;
};
std::vector<Line> linesOf(const std::string &arguments) {
  Ran ran = explainHere(arguments + " --json");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  std::vector<Line> lines;
  for (const llvm::json::Object &object : objects(ran.out)) {
    auto text = [&](const char *key) { return object.getString(key).getValueOr("").str(); };
    lines.push_back({text("kind"), text("rule"), text("function"), text("subject"), text("location"),
                     object.getInteger("bytes_saved").getValueOr(-1)});
    const llvm::json::Array *values = object.getArray("values");
    EXPECT_TRUE(values && !values->empty()) << arguments << ": no value is named for " << text("subject");
    EXPECT_FALSE(text("reason").empty() && text("kind") != "taken") << text("subject");
  }
  return lines;
}

// Every decision says where it was made, for what value and what it is worth; the most first; the same each time.
TEST(Explain, EveryDecisionHasPlaceValueAndWorth) {
  for (const char *arguments : {"config:tiny --precision bf16", "config:tiny --precision fp8", "bert.fir"}) {
    std::vector<Line> lines = linesOf(arguments);
    ASSERT_GT(lines.size(), 20u);
    int64_t before = INT64_MAX;
    for (const Line &line : lines) {
      EXPECT_FALSE(line.location.empty()) << line.rule << " " << line.subject;
      EXPECT_NE(line.location[0], '/') << line.location;
      EXPECT_NE(line.location[0], '.') << line.location;
      EXPECT_EQ(line.subject.find("0x"), std::string::npos) << line.subject;
      EXPECT_GE(line.bytes, 0) << line.subject;
      EXPECT_LE(line.bytes, before) << line.subject;
      before = line.bytes;
    }
    EXPECT_EQ(explainHere(arguments).out, explainHere(arguments).out);
  }
}

TEST(Explain, NoPairOfKernelsIsRefusedTwice) {
  std::vector<std::string> refused;
  for (const Line &line : linesOf("config:small --precision bf16 --rule fusion"))
    if (line.kind == "refused") refused.push_back(line.function + line.subject);
  ASSERT_FALSE(refused.empty());
  llvm::sort(refused);
  EXPECT_EQ(std::unique(refused.begin(), refused.end()), refused.end());
}

// A BERT that others wrote, where it is there.
TEST(Explain, BertOfAnOnnxFile) {
  const std::string file = FUSOR_SOURCE_DIR "/../shared/onnx/real/bert_tiny/model.onnx";
  if (!llvm::sys::fs::exists(file)) GTEST_SKIP() << "there is no " << file;
  std::string message, out = explainHere(file).out;
  EXPECT_TRUE(fileCheck(out, R"(
// CHECK-DAG: taken     lift-attention: attention; saves
// CHECK-DAG: @forward: %"121" = matmul %"120", %"99" : f32[batch, 1, sequence, 50]   (onnx:MatMul_75)
// CHECK-DAG: taken     lift-gelu: gelu; saves
// CHECK-DAG: taken     lift-norm: layer_norm; saves
// CHECK-DAG: taken     fusion: one contraction kernel; saves
// CHECK-DAG: @forward: %"152" = linear with %"160" = gelu   (onnx:Mul_110)
// CHECK-DAG: refused   fusion: linear and linear cannot be in one cluster: each is a kernel of its own; would save
// CHECK: decisions: {{.*}}; bytes at batch=16 sequence=16
)",
                        message))
      << message << out;
}

} // namespace
} // namespace fusor::tests
