// Training as `fusor train` does it: the reference's losses, resuming, accumulating, interrupting, holding out.
#include "frontend/api/checkpoint.h"
#include "frontend/api/errors.h"
#include "frontend/api/trainer.h"
#include "tests/runtime/temporary_folder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <fstream>

namespace {
using namespace fusor;
using namespace fusor::frontend;

std::string reference(const std::string &path) {
  std::string full = FUSOR_SOURCE_DIR "/../shared/reference/" + path;
  return llvm::sys::fs::exists(full) ? full : "";
}

struct Outcome {
  std::vector<double> losses;
  TrainSummary summary;
};
Outcome runOf(const TrainSettings &settings, int64_t cancelAfter = -1) {
  Outcome outcome;
  std::atomic<bool> cancel{false};
  auto onStep = [&](const StepReport &r) {
    outcome.losses.push_back(r.loss);
    if (r.step == cancelAfter) cancel = true;
  };
  auto summary = train(settings, {.step = onStep, .cancel = &cancel});
  if (!summary)
    ADD_FAILURE() << llvm::toString(summary.takeError());
  else
    outcome.summary = *summary;
  return outcome;
}
std::string problemOf(const TrainSettings &settings) {
  auto summary = train(settings, {});
  return summary ? "" : llvm::toString(summary.takeError());
}

TrainSettings tiny(int64_t steps) {
  TrainSettings s;
  s.config = *nn::configuration("tiny");
  s.precision = ir::DType::f32;
  s.device.device = "cpu";
  s.steps = steps, s.batch = 4, s.lr = 1e-3, s.seed = 5;
  return s;
}

std::string contents(const std::string &path) {
  auto file = llvm::MemoryBuffer::getFile(path, false, false);
  return file ? (*file)->getBuffer().str() : "<no " + path + ">";
}

class Reference : public testing::TestWithParam<std::pair<const char *, ir::DType>> {};

TEST_P(Reference, LossesAgree) {
  auto [name, precision] = GetParam();
  std::string folder = reference(name);
  if (folder.empty()) GTEST_SKIP() << "shared/reference is not here";
  auto trace = llvm::json::parse(contents(folder + "/trace.json"));
  ASSERT_TRUE(bool(trace)) << llvm::toString(trace.takeError());
  const llvm::json::Array &expected = *trace->getAsObject()->getArray("losses_fp64");
  TrainSettings s;
  s.config = *nn::configuration("small");
  s.precision = precision;
  s.initFile = folder + "/init.safetensors", s.tokensFile = folder + "/tokens.npy";
  Outcome outcome = runOf(s);
  ASSERT_EQ(outcome.losses.size(), expected.size());
  double tolerance = precision == ir::DType::f32 ? 2e-5 : 3e-3; // reference/README.md
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(outcome.losses[i], *expected[i].getAsNumber(), tolerance) << "step " << i + 1;
  EXPECT_EQ(outcome.summary.gemms.at(precision == ir::DType::f32 ? "f32" : "bf16"),
            precision == ir::DType::f32 ? 27 : 24); // in bf16 the three of the head stay in f32
}
INSTANTIATE_TEST_SUITE_P(Cases, Reference,
                         testing::Values(std::pair{"minigpt_small", ir::DType::f32},
                                         std::pair{"minigpt_recent", ir::DType::f32},
                                         std::pair{"minigpt_small", ir::DType::bf16}));

TEST(Trainer, AResumedRunHasTheSameBits) {
  TemporaryFolder folder;
  TrainSettings whole = tiny(8);
  whole.precision = ir::DType::bf16;
  whole.saveFolder = folder.path("whole");
  Outcome once = runOf(whole);
  TrainSettings part = whole;
  part.steps = 3, part.saveFolder = folder.path("part");
  runOf(part);
  part.steps = 8, part.resumeFolder = part.saveFolder;
  Outcome resumed = runOf(part);
  EXPECT_EQ(resumed.summary.firstStep, 4);
  EXPECT_EQ(resumed.losses, std::vector<double>(once.losses.begin() + 3, once.losses.end()));
  for (const char *file : {"/model.safetensors", "/optimizer.safetensors", "/checkpoint.json"})
    EXPECT_TRUE(contents(part.saveFolder + file) == contents(whole.saveFolder + file)) << file;
}

TEST(Trainer, ThreadsDoNotChangeBits) {
  TrainSettings s = tiny(4);
  s.device.threads = 1;
  Outcome one = runOf(s);
  s.device.threads = 3;
  EXPECT_EQ(runOf(s).losses, one.losses);
}

TEST(Trainer, RecomputingSavesMemoryAndDoesNotChangeBits) {
  for (ir::DType precision : {ir::DType::f32, ir::DType::bf16}) {
    TemporaryFolder folder;
    TrainSettings s = tiny(6);
    s.precision = precision;
    s.saveFolder = folder.path("again");
    Outcome again = runOf(s);
    s.recompute = false, s.saveFolder = folder.path("kept");
    Outcome kept = runOf(s);
    EXPECT_EQ(again.losses, kept.losses);
    EXPECT_LT(again.summary.peakBytes, kept.summary.peakBytes);
    EXPECT_TRUE(contents(folder.path("again/model.safetensors")) == contents(folder.path("kept/model.safetensors")));
  }
}

TEST(Trainer, AccumulatedMicroBatchesAreOneBatch) {
  TrainSettings s = tiny(5);
  Outcome whole = runOf(s);
  s.accumulate = 4;
  Outcome parts = runOf(s);
  ASSERT_EQ(parts.losses.size(), whole.losses.size());
  for (size_t i = 0; i < whole.losses.size(); ++i) EXPECT_NEAR(parts.losses[i], whole.losses[i], 1e-4) << i;
  EXPECT_LT(parts.summary.peakBytes, whole.summary.peakBytes + (1 << 20));
  s.accumulate = 3;
  EXPECT_NE(problemOf(s).find("--batch 4 must be a multiple of --accumulate 3"), std::string::npos);
}

TEST(Trainer, AnInterruptedRunSavesWhereItIs) {
  TemporaryFolder folder;
  TrainSettings s = tiny(50);
  s.saveFolder = folder.path("c");
  Outcome outcome = runOf(s, /*cancelAfter=*/3);
  EXPECT_TRUE(outcome.summary.interrupted);
  EXPECT_EQ(outcome.summary.lastStep, 3);
  auto info = readCheckpointInfo(s.saveFolder);
  ASSERT_TRUE(bool(info));
  EXPECT_EQ(info->getInteger("step").getValueOr(-1), 3);
}

TEST(Trainer, ATextIsTrainedOnAsBytesAndAPartIsHeldOut) {
  TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "the quick brown fox " + std::to_string(i % 7) + ", ";
  std::ofstream(folder.path("text.txt")) << text;
  TrainSettings s = tiny(10);
  s.data = "text:" + folder.path("text.txt"), s.heldPercent = 20, s.saveFolder = folder.path("c");
  Outcome outcome = runOf(s);
  ASSERT_TRUE(outcome.summary.evalLoss.has_value());
  EXPECT_NEAR(outcome.losses.front(), std::log(256.0), 0.3);
  EXPECT_LT(*outcome.summary.evalLoss, outcome.losses.front() - 0.3);
  auto info = readCheckpointInfo(s.saveFolder);
  ASSERT_TRUE(bool(info));
  EXPECT_EQ(info->getObject("config")->getInteger("vocab").getValueOr(0), 256);

  std::ofstream(folder.path("short.txt")) << "too short";
  s.data = "text:" + folder.path("short.txt");
  EXPECT_NE(problemOf(s).find("one sequence needs 33"), std::string::npos) << problemOf(s);
  s.data = "text:" + folder.path("absent.txt");
  EXPECT_NE(problemOf(s).find("cannot read '"), std::string::npos);
  s.data = "synthetic";
  EXPECT_NE(problemOf(s).find("--eval holds out a part of a text"), std::string::npos);
}

TEST(Trainer, ASmallLossIsReached) {
  TrainSettings s = tiny(60);
  s.batch = 16, s.lr = 1e-2;
  Outcome outcome = runOf(s);
  EXPECT_LT(outcome.losses.back(), 1.5) << "from " << outcome.losses.front();
}

TEST(Trainer, FilesThatDoNotFitAreRefusedWithNames) {
  std::string tokens = reference("minigpt_small/tokens.npy"), init = reference("minigpt_small/init.safetensors");
  if (tokens.empty()) GTEST_SKIP() << "shared/reference is not here";
  TrainSettings s = tiny(2);
  s.tokensFile = tokens;
  EXPECT_NE(problemOf(s).find("has sequences of 65 tokens, the configuration's context + 1 is 33"), std::string::npos);
  s.tokensFile.clear(), s.initFile = init;
  std::string problem = problemOf(s);
  EXPECT_NE(problem.find("does not fit the model"), std::string::npos);
  EXPECT_NE(problem.find("'emb.weight' is f32[96, 128] in the file, f32[96, 64] in the model"), std::string::npos);
  EXPECT_NE(problem.find("'head.weight'"), std::string::npos) << "all of them at once";
}

TEST(Schedule, WarmsUpAndFalls) {
  auto at = [](Schedule schedule, int64_t step) { return learningRate(schedule, 1.0, step, 4, 12); };
  EXPECT_DOUBLE_EQ(at(Schedule::constant, 1), 0.25);
  EXPECT_DOUBLE_EQ(at(Schedule::constant, 4), 1);
  EXPECT_DOUBLE_EQ(at(Schedule::constant, 12), 1);
  EXPECT_DOUBLE_EQ(at(Schedule::cosine, 2), 0.5);
  EXPECT_DOUBLE_EQ(at(Schedule::cosine, 5), 1);
  EXPECT_NEAR(at(Schedule::cosine, 9), 0.5, 1e-12);
  EXPECT_LT(at(Schedule::cosine, 12), 0.04);
  EXPECT_GT(at(Schedule::cosine, 12), 0);
  EXPECT_DOUBLE_EQ(learningRate(Schedule::cosine, 1.0, 1, 0, 1), 1);
}

} // namespace
