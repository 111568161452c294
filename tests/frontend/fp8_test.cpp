// FP8 training as `fusor train --precision fp8` does it: Transformer Engine's traces, the update rule to the last slot,
// and checkpoints.
#include "frontend/api/fusor.h"
#include "tests/frontend/fp8_runs.h"
#include "tests/runtime/temporary_folder.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <cmath>

namespace {
using namespace fusor;
using namespace fusor::frontend;
using tests::Fp8Outcome, tests::fp8Run, tests::trainFp8;

std::string contentsOf(const std::string &path) {
  auto file = llvm::MemoryBuffer::getFile(path, false, false);
  return file ? (*file)->getBuffer().str() : "<no " + path + ">";
}

struct TensorTrace {
  double amax = 0, scale = 0;
  std::vector<double> history;
};
using StepTrace = std::map<std::string, TensorTrace>;

std::vector<double> numbers(const llvm::json::Array &array) {
  std::vector<double> values;
  for (const llvm::json::Value &v : array) values.push_back(v.getAsNumber().getValueOr(NAN));
  return values;
}

std::vector<StepTrace> readTrace(const std::string &path) {
  std::vector<StepTrace> steps;
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file) return steps;
  for (llvm::line_iterator line(**file); !line.is_at_eof(); ++line) {
    auto json = llvm::json::parse(*line);
    if (!json) {
      ADD_FAILURE() << llvm::toString(json.takeError());
      return steps;
    }
    EXPECT_EQ(json->getAsObject()->getInteger("step"), static_cast<int64_t>(steps.size() + 1));
    StepTrace &step = steps.emplace_back();
    for (const auto &entry : *json->getAsObject()->getObject("state")) {
      const llvm::json::Object &o = *entry.second.getAsObject();
      step[entry.first.str()] = {o.getNumber("amax").getValueOr(NAN), o.getNumber("scale").getValueOr(NAN),
                                 numbers(*o.getArray("amax_history"))};
    }
  }
  return steps;
}

// reference/README.md: what each slot must be after step n, given the histories of step n - 1.
void expectExactRule(const std::vector<StepTrace> &steps, const passes::DelayedScaling &recipe) {
  for (size_t n = 0; n < steps.size(); ++n)
    for (const auto &[name, now] : steps[n]) {
      SCOPED_TRACE(name + " in step " + std::to_string(n + 1));
      auto length = static_cast<size_t>(recipe.amaxHistory);
      ASSERT_EQ(now.history.size(), length);
      std::vector<double> before(length, 0.0);
      double scaleBefore = 1;
      if (n) before = steps[n - 1].at(name).history, scaleBefore = steps[n - 1].at(name).scale;
      if (now.amax == 0) {
        EXPECT_EQ(now.history, before);
        EXPECT_EQ(now.scale, scaleBefore);
        continue;
      }
      bool isE5m2 = recipe.format == passes::Fp8Format::hybrid && llvm::StringRef(name).endswith(".grad_output");
      double used = now.amax;
      for (size_t i = 1; i < length && recipe.amaxAlgo == passes::AmaxAlgo::max; ++i) used = std::max(used, before[i]);
      float top = static_cast<float>((isE5m2 ? 57344 : 448) / std::exp2(recipe.margin));
      EXPECT_EQ(now.scale, static_cast<double>(top / static_cast<float>(used)));
      std::vector<double> expected(before.begin() + 1, before.end());
      expected.push_back(now.amax);
      expected[0] = 0;
      EXPECT_EQ(now.history, expected);
    }
}

// Transformer Engine's scales of one step under our names.
std::map<std::string, double> transformerEngineScales(const llvm::json::Object &state) {
  std::map<std::string, double> scales;
  for (const auto &entry : state) {
    llvm::SmallVector<llvm::StringRef, 8> parts;
    std::string name = entry.first.str();
    llvm::StringRef(name).split(parts, '.');
    llvm::StringRef module = parts[parts.size() - 2];
    std::vector<std::string> layers;
    if (module == "layernorm_qkv") layers = {"qkv"};
    if (module == "proj") layers = {"proj"};
    if (module == "layernorm_mlp") layers = {"fc1", "fc2"};
    const llvm::json::Array &scale = *entry.second.getAsObject()->getArray("scale");
    for (size_t j = 0; j < layers.size(); ++j) {
      std::string layer = (parts[0] + "." + parts[1] + "." + layers[j]).str();
      if (parts.back() == "scaling_fwd") {
        scales[layer + ".input"] = *scale[3 * j].getAsNumber();
        scales[layer + ".weight"] = *scale[3 * j + 1].getAsNumber();
      } else {
        scales[layer + ".grad_output"] = *scale[2 * j].getAsNumber();
      }
    }
  }
  return scales;
}

class Fp8Reference : public testing::TestWithParam<const char *> {};

TEST_P(Fp8Reference, FollowsTransformerEngine) {
  std::string folder = std::string(FUSOR_SOURCE_DIR "/../shared/reference/") + GetParam();
  if (!llvm::sys::fs::exists(folder)) GTEST_SKIP() << "shared/reference is not here";
  auto reference = llvm::json::parse(contentsOf(folder + "/trace.json"));
  ASSERT_TRUE(bool(reference)) << llvm::toString(reference.takeError());
  const llvm::json::Object &trace = *reference->getAsObject(), &recipe = *trace.getObject("recipe");
  TemporaryFolder temporary;
  TrainSettings s = fp8Run("small", 24);
  s.lr = 3e-4;
  s.fp8->amaxHistory = *recipe.getInteger("amax_history_len");
  if (*recipe.getString("amax_compute_algo") == "most_recent") s.fp8->amaxAlgo = passes::AmaxAlgo::mostRecent;
  s.initFile = folder + "/init.safetensors", s.tokensFile = folder + "/tokens.npy";
  s.fp8Trace = temporary.path("trace.jsonl");
  Fp8Outcome outcome = trainFp8(s);
  auto losses = numbers(*trace.getArray("losses_te_fp8"));
  ASSERT_EQ(outcome.losses.size(), losses.size());
  for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(outcome.losses[i], losses[i], 1e-2) << "step " << i + 1;
  EXPECT_EQ(outcome.summary.gemms.at("fp8"), 24);
  EXPECT_EQ(outcome.summary.gemms.at("bf16"), 0);
  EXPECT_EQ(outcome.summary.fp8.size(), 3u) << "one layer's tensors";

  auto steps = readTrace(s.fp8Trace);
  ASSERT_EQ(steps.size(), losses.size());
  expectExactRule(steps, *s.fp8);
  const llvm::json::Array &states = *trace.getArray("te_fp8_state");
  for (size_t n = 0; n < steps.size(); ++n) {
    auto scales = transformerEngineScales(*states[n].getAsObject());
    ASSERT_EQ(scales.size(), steps[n].size());
    for (const auto &[name, scale] : scales) {
      llvm::StringRef tensor = llvm::StringRef(name).rsplit('.').second;
      double tolerance = tensor == "weight" ? (n ? 5e-3 : 1e-3) : tensor == "input" ? 0.06 : 0.15;
      EXPECT_NEAR(steps[n].at(name).scale / scale, 1, tolerance) << name << " in step " << n + 1;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, Fp8Reference, testing::Values("minigpt_small", "minigpt_recent"));

TEST(Fp8, EveryRecipeFollowsTheRule) {
  TemporaryFolder temporary;
  int64_t margin = 0;
  for (int64_t history : {1, 4, 16, 1024})
    for (auto format : {passes::Fp8Format::hybrid, passes::Fp8Format::e4m3})
      for (auto algo : {passes::AmaxAlgo::max, passes::AmaxAlgo::mostRecent}) {
        if (algo == passes::AmaxAlgo::mostRecent && history == 1024) continue;
        TrainSettings s = fp8Run("tiny", 6);
        s.batch = 2;
        s.fp8->amaxHistory = history, s.fp8->format = format, s.fp8->amaxAlgo = algo;
        s.fp8->margin = margin++ % 4;
        s.fp8Trace = temporary.path("trace.jsonl");
        SCOPED_TRACE(llvm::formatv("history {0}, margin {1}, {2}", history, s.fp8->margin,
                                   format == passes::Fp8Format::hybrid ? "hybrid" : "e4m3")
                         .str());
        Fp8Outcome outcome = trainFp8(s);
        auto steps = readTrace(s.fp8Trace);
        ASSERT_EQ(steps.size(), 6u);
        EXPECT_EQ(steps[0].size(), 24u);
        expectExactRule(steps, *s.fp8);
        EXPECT_NEAR(outcome.losses[0], std::log(96), 0.3);
      }
}

// Two micro-batches give the amaxes of the whole batch, and one update a step.
TEST(Fp8, AccumulationMergesAmaxes) {
  TemporaryFolder temporary;
  TrainSettings whole = fp8Run("tiny", 1), parts = whole;
  whole.fp8Trace = temporary.path("whole.jsonl");
  parts.accumulate = 2, parts.fp8Trace = temporary.path("parts.jsonl");
  trainFp8(whole), trainFp8(parts);
  auto once = readTrace(whole.fp8Trace), twice = readTrace(parts.fp8Trace);
  ASSERT_EQ(once.size(), 1u);
  ASSERT_EQ(twice.size(), 1u);
  expectExactRule(twice, *parts.fp8);
  for (const auto &[name, tensor] : once[0]) {
    bool isGradient =
        llvm::StringRef(name).endswith(".grad_output"); // a micro-batch's mean is over half as many tokens
    EXPECT_NEAR(twice[0].at(name).amax / tensor.amax, isGradient ? 2 : 1, 0.1) << name;
  }
}

TEST(Fp8, WeightGradientsMayStayInBf16) {
  TrainSettings s = fp8Run("tiny", 2);
  s.fp8->wgrad = false;
  Fp8Outcome outcome = trainFp8(s);
  EXPECT_EQ(outcome.summary.gemms.at("fp8"), 16);
  EXPECT_EQ(outcome.summary.gemms.at("bf16"), 8);
  s.fp8->wgrad = true, s.fp8->select = "blocks.0";
  outcome = trainFp8(s);
  EXPECT_EQ(outcome.summary.gemms.at("fp8"), 12);
  EXPECT_EQ(outcome.summary.gemms.at("bf16"), 12);
}

TEST(Fp8, AResumedRunHasTheSameBits) {
  TemporaryFolder folder;
  TrainSettings whole = fp8Run("tiny", 6);
  whole.saveFolder = folder.path("whole");
  Fp8Outcome once = trainFp8(whole);
  TrainSettings part = whole;
  part.steps = 3, part.saveFolder = folder.path("part");
  trainFp8(part);
  part.steps = 6, part.resumeFolder = part.saveFolder;
  Fp8Outcome resumed = trainFp8(part);
  EXPECT_TRUE(resumed.notes.empty());
  EXPECT_EQ(resumed.losses, std::vector<double>(once.losses.begin() + 3, once.losses.end()));
  for (const char *file : {"/model.safetensors", "/optimizer.safetensors", "/fp8.safetensors", "/checkpoint.json"})
    EXPECT_TRUE(contentsOf(part.saveFolder + file) == contentsOf(whole.saveFolder + file)) << file;

  part.fp8->amaxHistory = 4, part.steps = 7;
  auto refused = train(part, {});
  ASSERT_FALSE(refused);
  std::string text = llvm::toString(refused.takeError());
  EXPECT_NE(text.find("has amax histories of 16 steps, --amax-history is 4: leave it out"), std::string::npos) << text;

  llvm::sys::fs::remove(part.saveFolder + "/fp8.safetensors");
  part.fp8->amaxHistory = 16;
  Fp8Outcome calibrating = trainFp8(part);
  ASSERT_EQ(calibrating.notes.size(), 1u) << llvm::join(calibrating.notes, "\n");
  EXPECT_EQ(calibrating.notes[0],
            "the checkpoint has no FP8 state: scales start at 1, and each step calibrates them from its amaxes; "
            "--fp8-calibrate measures them before the first step");
}

TEST(Fp8, ARecipeThatMakesNoSenseIsRefused) {
  auto problem = [](auto change) {
    TrainSettings s = fp8Run("tiny", 1);
    change(*s.fp8);
    auto summary = train(s, {});
    return summary ? "" : llvm::toString(summary.takeError());
  };
  using Recipe = passes::DelayedScaling;
  EXPECT_NE(problem([](Recipe &r) { r.amaxHistory = 0; }).find("an amax history has 1 to 65536 steps, is given 0"),
            std::string::npos);
  EXPECT_NE(problem([](Recipe &r) { r.margin = 31; }).find("the margin is 0 to 30, is given 31"), std::string::npos);
  EXPECT_NE(problem([](Recipe &r) { r.select = "("; }).find("'(' is no regular expression"), std::string::npos);
}

// CONTRACT.md's program with FP8.
TEST(Fp8, AProgramOfTheApiLearnsAndKeepsItsState) {
  TemporaryFolder folder;
  Builder b("minigpt");
  Value tokens = b.input("tokens", i32, {dim("B", 1, 64), 16}), targets = b.input("targets", i32, {dim("B"), 16});
  Value logits = nn::gpt(b, tokens, {.width = 32, .layers = 1, .ffn = 64, .context = 16});
  Module m = b.trainingStep(crossEntropy(logits, targets), AdamW{.lr = 1e-2},
                            Fp8{DelayedScaling{.format = hybrid, .amaxHistory = 4}});
  EXPECT_NE(m.str().find("state @blocks.0.fc1.input.amax_history : f32[4]"), std::string::npos);
  auto program = compile(m, Device::cpu(), {.seed = 3, .strict = true}),
       other = compile(m, Device::cpu(), {.seed = 4, .strict = true});
  ASSERT_TRUE(bool(program) && bool(other)) << program.error().text();
  double first = 0, last = 0;
  auto batches = syntheticBatches({.batch = 16, .steps = 30, .context = 16});
  for (auto [x, y] : batches) {
    Step step = program->run({{"tokens", x}, {"targets", y}});
    ASSERT_FALSE(step.error()) << step.error().text();
    last = step.loss();
    if (step.index == 1) first = last;
  }
  EXPECT_LT(last, first - 1);
  ASSERT_FALSE(program->save(folder.path("c")));
  EXPECT_TRUE(llvm::sys::fs::exists(folder.path("c/fp8.safetensors")));
  ASSERT_FALSE(other->load(folder.path("c")));
  EXPECT_EQ(other->get("blocks.0.fc1.grad_output.scale")->at(0), program->get("blocks.0.fc1.grad_output.scale")->at(0));
  auto [x, y] = batches.at(30);
  EXPECT_EQ(program->run({{"tokens", x}, {"targets", y}}).loss(), other->run({{"tokens", x}, {"targets", y}}).loss());
}

} // namespace
