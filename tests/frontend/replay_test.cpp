// `fusor replay`: a dumped kernel, edited or not, in the emulator.
#include "runtime/cache/cache.h"
#include "tests/frontend/command.h"
#include "tests/support/replaced.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"
#include <fstream>

using namespace fusor::tests;

namespace {

/// A dump of a tiny training step with the inputs of some kernels; one for all tests here.
class Replay : public testing::Test {
protected:
  static void SetUpTestSuite() {
    folder = new TemporaryFolder;
    Ran ran =
        runFusor("train --config tiny --batch 2 --steps 1 --device cpu --dump " + folder->path("d") +
                 " --dump-inputs '^(linear_gelu|adamw__f32_96|cross_entropy__|layer_norm__bf16|split_attention__)'");
    ASSERT_EQ(ran.exit, 0) << ran.err;
  }
  static void TearDownTestSuite() { delete folder; }

  static std::vector<std::string> kernels(llvm::StringRef prefix) {
    std::vector<std::string> paths;
    std::error_code code;
    for (llvm::sys::fs::directory_iterator it(folder->path("d/kernels"), code), end; it != end && !code;
         it.increment(code))
      if (llvm::sys::path::filename(it->path()).startswith(prefix)) paths.push_back(it->path());
    std::sort(paths.begin(), paths.end());
    return paths;
  }
  /// The one kernel whose name begins so.
  static std::string kernel(llvm::StringRef prefix) {
    auto paths = kernels(prefix);
    EXPECT_EQ(paths.size(), 1u) << prefix.str();
    return paths.empty() ? "" : paths.front();
  }
  static void edit(const std::string &kernel, llvm::StringRef from, llvm::StringRef to) {
    std::string text = contents(kernel + "/kernel.original.cu");
    EXPECT_NE(text.find(from.str()), std::string::npos) << from.str();
    std::ofstream(kernel + "/kernel.cu") << replaced(text, from.str(), to.str());
  }
  static Ran replay(const std::string &kernel, const std::string &flags = "") {
    return runFusor("replay " + kernel + " --device cpu --cache " + folder->path("cache") + " " + flags);
  }
  static TemporaryFolder *folder;
};
TemporaryFolder *Replay::folder = nullptr;

// The promise: one line edited shows the difference and both times; put back, every bit is as it was.
TEST_F(Replay, AnEditedConstantShowsAndPutBackItDoesNot) {
  std::string gelu = kernel("linear_gelu");
  Ran untouched = replay(gelu);
  EXPECT_EQ(untouched.exit, 0) << untouched.err;
  EXPECT_SAYS(untouched.out, "as it was written");
  EXPECT_SAYS(untouched.out, "from the original   equal bit for bit");
  EXPECT_SAYS(untouched.err, "in the emulator, its times are not a GPU's");

  edit(gelu, "0.044715f", "0.5f");
  Ran edited = replay(gelu, "--json");
  EXPECT_EQ(edited.exit, 1) << edited.out;
  llvm::json::Object result = objects(edited.out).at(0);
  EXPECT_TRUE(*result.getBoolean("edited"));
  EXPECT_TRUE(*result.getBoolean("emulated"));
  EXPECT_FALSE(*result.getBoolean("agrees"));
  EXPECT_GT(*result.getNumber("ms"), 0);
  EXPECT_GT(*result.getNumber("original_ms"), 0);
  const llvm::json::Array &outputs = *result.getArray("outputs");
  ASSERT_EQ(outputs.size(), 2u);
  const llvm::json::Object &product = *outputs[0].getAsObject(), &activation = *outputs[1].getAsObject();
  EXPECT_EQ(product.getObject("from_original")->getInteger("differing").getValueOr(-1), 0); // gelu comes behind it
  const llvm::json::Object &difference = *activation.getObject("from_original");
  EXPECT_GT(difference.getInteger("differing").getValueOr(0), 100);
  EXPECT_GT(difference.getNumber("max_abs").getValueOr(0), 1e-3);
  EXPECT_EQ(difference.getArray("first")->size(), 3u);
  Ran text = replay(gelu);
  EXPECT_SAYS(text.out, "edited (linear_gelu");
  EXPECT_SAYS(text.out, "elements differ, by at most ");
  EXPECT_SAYS(text.out, "; the first is [");
  EXPECT_SAYS(text.out, "time: ");

  edit(gelu, "0.044715f", "0.044715f");
  Ran restored = replay(gelu);
  EXPECT_EQ(restored.exit, 0) << restored.err;
  EXPECT_EQ(llvm::StringRef(restored.out).count("from the original   equal bit for bit"), 2u) << restored.out;
}

// A change within what the types can tell is no failure, but it is shown.
TEST_F(Replay, AnotherOrderAgreesThoughBitsDiffer) {
  std::string gelu = kernel("linear_gelu");
  edit(gelu, "0.044715f", "0.046f");
  Ran ran = replay(gelu, "--json");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  llvm::json::Object result = objects(ran.out).at(0);
  EXPECT_TRUE(*result.getBoolean("agrees"));
  EXPECT_FALSE(*result.getBoolean("same_bits"));
  edit(gelu, "0.044715f", "0.044715f");
}

// Rows, attention, many tensors through tables, and a step of two kernels with a workspace between.
TEST_F(Replay, EveryKindOfKernelRunsByItself) {
  for (const char *prefix : {"layer_norm__bf16", "split_attention__", "adamw__f32_96", "cross_entropy__"})
    for (const std::string &path : kernels(prefix)) {
      Ran ran = replay(path);
      EXPECT_EQ(ran.exit, 0) << path << "\n" << ran.err << ran.out;
      EXPECT_SAYS(ran.out, "from the reference  agrees: at most ");
      EXPECT_SAYS(ran.out, "from the original   equal bit for bit");
    }
  EXPECT_SAYS(replay(kernels("cross_entropy__").front()).out, "one of 2 of its step");
}

TEST_F(Replay, WhatCannotBeReplayedIsAnError) {
  std::string gelu = kernel("linear_gelu");
  edit(gelu, "const float activation =", "const float activation = undeclared +");
  Ran broken = replay(gelu);
  EXPECT_EQ(broken.exit, 1);
  EXPECT_SAYS(broken.err, "undeclared");
  edit(gelu, "store(activation2 + row", "store(activation2 - 2 + row"); // before the buffer
  Ran outside = replay(gelu);
  EXPECT_EQ(outside.exit, 1);
  EXPECT_SAYS(outside.err, "before the start of a buffer");
  edit(gelu, "store(activation2 + row", "store(activation2 - (1ll << 40) + row"); // nowhere
  Ran crashed = replay(gelu);
  EXPECT_EQ(crashed.exit, 1);
  EXPECT_SAYS(crashed.err, "crashed in the emulator");
  edit(gelu, "0.044715f", "0.044715f");
}

TEST_F(Replay, FoldersThatAreNoneAreErrors) {
  Ran absent = replay(folder->path("nothing"));
  EXPECT_EQ(absent.exit, 1);
  EXPECT_SAYS(absent.err, "give the folder of a kernel, DIR/kernels/NAME");
  Ran bare = replay(kernels("linear__").front()); // dumped without inputs
  EXPECT_EQ(bare.exit, 1);
  EXPECT_SAYS(bare.err, "has no inputs to run on: write the dump again with --dump-inputs '^linear__");
  TemporaryFolder damaged;
  std::string copy = damaged.path("k");
  ASSERT_EQ(std::system(("cp -r " + kernel("adamw__f32_96") + " " + copy).c_str()), 0);
  std::ofstream(copy + "/inputs/inputs.json") << "{\"inputs\": 3}";
  Ran ran = replay(copy);
  EXPECT_EQ(ran.exit, 1);
  EXPECT_SAYS(ran.err, "inputs.json: \"inputs\" must be an array");
}

TEST_F(Replay, InstallPutsTheEditedTextIntoTheCacheAndOutAgain) {
  std::string gelu = kernel("linear_gelu");
  Ran unedited = replay(gelu, "--install");
  EXPECT_EQ(unedited.exit, 1);
  EXPECT_SAYS(unedited.err, "is not edited: there is nothing to install");
  edit(gelu, "0.044715f", "0.046f");
  Ran installed = replay(gelu, "--install");
  EXPECT_EQ(installed.exit, 0) << installed.err;
  EXPECT_SAYS(installed.err, "warning: runs on a GPU that would use kernel 'linear_gelu");
  Ran stats = runFusor("cache stats --cache " + folder->path("cache"));
  EXPECT_SAYS(stats.out, "edited-kernel: 1");
  Ran removed = replay(gelu, "--uninstall");
  EXPECT_EQ(removed.exit, 0) << removed.err;
  EXPECT_EQ(runFusor("cache stats --cache " + folder->path("cache")).out.find("edited-kernel: 1"), std::string::npos);
  EXPECT_EQ(replay(gelu, "--uninstall").exit, 1);
  edit(gelu, "0.044715f", "0.044715f");
}

} // namespace
