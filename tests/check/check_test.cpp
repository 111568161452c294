// --check and --bisect: a wrong rule in the command (planted_rule.cpp) is named, a NaN is located at its op.
#include "runtime/checkpoint/npy.h"
#include "tests/frontend/command.h"
#include "llvm/Support/FileSystem.h"
#include <fstream>

namespace fusor::tests {
namespace {

// Three rewrites before and behind the planted one; %n = exp(-x) is where it fires.
constexpr const char *kModel = R"(dim B in 1..64
func @main(%x: f32[B, 8], %w: f32[8]) -> f32[B, 8] {
  %a = neg %x
  %b = neg %a
  %c = mul %b, %w
  %d = neg %c
  %n = exp %d
  %s = add %n, %x
  %r = reshape %s {shape = [8*B]}
  %y = reshape %r {shape = [B, 8]}
  %t = tanh %y
  return %t
}
)";

struct Model {
  TemporaryFolder folder;
  std::string file = folder.path("model.fir"), inputs = folder.path("in");
  explicit Model(const std::string &text, double low = -1) {
    std::ofstream(file) << text;
    llvm::sys::fs::create_directories(inputs);
    std::vector<float> x(16), w(8);
    for (int i = 0; i < 16; ++i) x[i] = static_cast<float>(low + 0.25 * i);
    for (int i = 0; i < 8; ++i) w[i] = static_cast<float>(0.5 + 0.1 * i);
    write("input_0_x.npy", {2, 8}, x);
    write("input_1_w.npy", {8}, w);
  }
  void write(const std::string &name, llvm::ArrayRef<int64_t> shape, const std::vector<float> &data) {
    llvm::cantFail(runtime::writeNpy(inputs + "/" + name, ir::DType::f32, shape,
                                     {reinterpret_cast<const uint8_t *>(data.data()), data.size() * 4}));
  }
  std::string arguments(const std::string &flags) const {
    return "run " + file + " --inputs " + inputs + " --device cpu " + flags;
  }
};

Ran runPlanted(const std::string &arguments) { return runBinary(FUSOR_PLANTED, arguments); }

TEST(Check, ARightModulePasses) {
  Model model(kModel);
  Ran ran = runFusor(model.arguments("--check --bisect"));
  EXPECT_EQ(ran.exit, 0) << ran.err;
}

TEST(Check, NamesTheValueAndTheKernelThatAWrongRuleChanged) {
  Model model(kModel);
  Ran ran = runPlanted(model.arguments("--check"));
  EXPECT_EQ(ran.exit, 1);
  EXPECT_SAYS(ran.err, "passes changed a value: %n in kernel @");
  EXPECT_SAYS(ran.err, "before: %n = exp %d");
  EXPECT_SAYS(ran.err, "model.fir:7:");
  EXPECT_SAYS(ran.err, "--bisect finds the rewrite");
}

TEST(Check, BisectFindsTheRewrite) {
  Model model(kModel);
  Ran ran = runPlanted(model.arguments("--check --bisect"));
  EXPECT_EQ(ran.exit, 1);
  EXPECT_SAYS(ran.err, "rule 'planted'");
  EXPECT_SAYS(ran.err, "@main: %n = exp %d");
  // Both ways out that it names work.
  size_t at = ran.err.find("--fuel ");
  ASSERT_NE(at, std::string::npos) << ran.err;
  std::string fuel = ran.err.substr(at, ran.err.find(',', at) - at);
  EXPECT_EQ(runPlanted(model.arguments("--check " + fuel)).exit, 0) << fuel;
  EXPECT_EQ(runPlanted(model.arguments("--check --disable-rule planted")).exit, 0);
}

TEST(Check, BisectInATrainingStep) {
  Ran ran = runFusor("train --config tiny --steps 1 --batch 2 --device cpu --check --bisect");
  EXPECT_EQ(ran.exit, 0) << ran.err;
}

TEST(Check, LocatesTheOpThatMakesANaN) {
  Model model(R"(dim B in 1..64
func @main(%x: f32[B, 8], %w: f32[8]) -> f32[B, 8] {
  %a = mul %x, %w
  %e = exp %a
  %l = log %a
  %y = add %e, %l
  return %y
}
)");
  std::string dump = model.folder.path("dump");
  Ran ran = runFusor(model.arguments("--check --dump " + dump));
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_SAYS(ran.err, "warning: the first NaN or Inf: @main: %l = log %a");
  EXPECT_SAYS(ran.err, "for element 0 of %l");
  EXPECT_SAYS(ran.err, "model.fir:5:");
  // By itself, as the message says.
  std::string again = dump + ".check";
  Ran alone = runFusor("run " + again + "/non_finite.fir --inputs " + again + " --device cpu --check");
  EXPECT_EQ(alone.exit, 0) << alone.err;
  EXPECT_SAYS(alone.err, "log %a");
  Model fine(contents(model.file), 1);
  Ran clean = runFusor(fine.arguments("--check"));
  EXPECT_EQ(clean.err.find("NaN or Inf"), std::string::npos) << clean.err;
}

TEST(Check, BisectNeedsCheck) { EXPECT_EQ(runFusor("run x.fir --bisect").exit, 64); }

} // namespace
} // namespace fusor::tests
