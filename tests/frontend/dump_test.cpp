// Dump folders, written by the command as a user runs it: whole, readable, and there at once or not at all.
#include "frontend/bench/cases.h"
#include "tests/frontend/command.h"
#include "tests/runtime/temporary_folder.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"
#include <fstream>

using namespace fusor::tests;

namespace {

constexpr const char *kDumpedTrain = "train --config tiny --batch 4 --device cpu --steps 2 ";

llvm::json::Value jsonOf(const std::string &path) {
  auto value = llvm::json::parse(contents(path));
  if (value) return std::move(*value);
  ADD_FAILURE() << path << ": " << llvm::toString(value.takeError());
  return nullptr;
}

std::vector<std::string> namesIn(const std::string &folder) {
  std::vector<std::string> names;
  std::error_code code;
  for (llvm::sys::fs::directory_iterator it(folder, code), end; it != end && !code; it.increment(code))
    names.push_back(llvm::sys::path::filename(it->path()).str());
  return names;
}

int64_t number(const llvm::json::Object &object, const char *key) {
  auto value = object.getInteger(key);
  EXPECT_TRUE(value.hasValue()) << key;
  return value.getValueOr(-1);
}

// What each file says, and that they say it of the same launches, kernels and products.
TEST(Dump, OfATrainingStepIsComplete) {
  TemporaryFolder folder;
  std::string d = folder.path("d");
  Ran ran = runFusor(std::string(kDumpedTrain) + "--dump " + d);
  ASSERT_EQ(ran.exit, 0) << ran.err;
  llvm::json::Value dump = jsonOf(d + "/dump.json");
  const llvm::json::Object &facts = *dump.getAsObject();
  EXPECT_EQ(facts.getString("function").getValueOr(""), "train_step");
  EXPECT_EQ(facts.getString("config").getValueOr(""), "tiny");
  EXPECT_EQ(facts.getString("precision").getValueOr(""), "bf16");
  EXPECT_GT(facts.getNumber("step_ms").getValueOr(0), 0);
  EXPECT_GT(facts.getObject("roofline")->getNumber("bytes_per_ms").getValueOr(0), 0);
  EXPECT_EQ(number(*facts.getObject("symbols"), "B"), 4);

  llvm::json::Value stepsValue = jsonOf(d + "/steps.json"), gemmsValue = jsonOf(d + "/gemms.json");
  const llvm::json::Array &steps = *stepsValue.getAsArray(), &gemms = *gemmsValue.getAsArray();
  EXPECT_EQ(gemms.size(), 27u);
  llvm::StringSet<> kernels, launched;
  for (const std::string &name : namesIn(d + "/kernels")) kernels.insert(name);
  EXPECT_GT(kernels.size(), 10u);
  double ms = 0;
  unsigned products = 0;
  for (const llvm::json::Value &value : steps) {
    const llvm::json::Object &step = *value.getAsObject();
    EXPECT_EQ(number(step, "index"), &value - steps.data());
    ms += step.getNumber("ms").getValueOr(0);
    auto kernel = step.getString("kernel");
    ASSERT_TRUE(kernel.hasValue()) << step.getString("name")->str();
    EXPECT_TRUE(kernels.contains(*kernel)) << kernel->str();
    launched.insert(*kernel);
    if (const auto *set = step.getArray("kernel_set"))
      for (const auto &other : *set) launched.insert(*other.getAsString());
    if (auto gemm = step.getInteger("gemm")) {
      ++products;
      EXPECT_EQ(number(*gemms[*gemm].getAsObject(), "step"), number(step, "step"));
    }
    EXPECT_FALSE(step.getString("ir")->empty());
    EXPECT_FALSE(step.getArray("writes")->empty());
    EXPECT_FALSE(step.getArray("locations")->empty());
  }
  EXPECT_EQ(products, gemms.size());
  EXPECT_GT(ms, 0);
  for (const auto &kernel : kernels) {
    EXPECT_TRUE(launched.contains(kernel.getKey())) << kernel.getKey().str();
    std::string place = d + "/kernels/" + kernel.getKey().str();
    EXPECT_SAYS(contents(place + "/kernel.cu"), kernel.getKey().str() + "(");
    llvm::json::Value json = jsonOf(place + "/kernel.json");
    EXPECT_FALSE(json.getAsObject()->getArray("uses")->empty()) << place;
    EXPECT_GT(number(*json.getAsObject(), "grid_blocks"), 0) << place;
    EXPECT_FALSE(llvm::sys::fs::exists(place + "/inputs"));
  }
  const llvm::json::Object &qkv = *gemms[0].getAsObject();
  EXPECT_EQ(number(qkv, "m"), 4 * 32);
  EXPECT_EQ(number(qkv, "n"), 3 * 64);
  EXPECT_EQ(number(qkv, "k"), 64);
  EXPECT_EQ(qkv.getString("result").getValueOr(""), "blocks.0.qkv");
  EXPECT_EQ(qkv.getString("layer").getValueOr(""), "blocks.0");
  EXPECT_SAYS(qkv.getString("why_not_fp8")->str(), "the run's precision is bf16");
}

TEST(Dump, ModulesAreThoseThatChanged) {
  TemporaryFolder folder;
  std::string d = folder.path("d");
  ASSERT_EQ(runFusor(std::string(kDumpedTrain) + "--dump " + d).exit, 0);
  llvm::json::Value index = jsonOf(d + "/modules/index.json");
  std::string before = contents(d + "/modules/00_input.fir");
  unsigned files = 0;
  for (const llvm::json::Value &value : *index.getAsArray()) {
    const llvm::json::Object &pass = *value.getAsObject();
    auto file = pass.getString("file");
    EXPECT_EQ(file.hasValue(), *pass.getBoolean("changed"));
    EXPECT_FALSE(pass.getString("why")->empty());
    if (!file) continue;
    ++files;
    std::string text = contents(d + "/modules/" + file->str());
    if (number(pass, "index") != 0) {
      EXPECT_NE(text, before) << file->str();
      EXPECT_GT(number(pass, "added") + number(pass, "removed"), 0) << file->str();
    }
    before = text;
  }
  EXPECT_EQ(namesIn(d + "/modules").size(), files + 1); // and the index
  EXPECT_LT(files, index.getAsArray()->size());         // some change nothing here
  EXPECT_EQ(runFusor("opt " + d + "/modules/00_input.fir --pipeline train --precision bf16").exit, 0);
}

TEST(Dump, PlanSaysWhyAndWhatIsAlive) {
  TemporaryFolder folder;
  std::string d = folder.path("d");
  ASSERT_EQ(runFusor(std::string(kDumpedTrain) + "--dump " + d).exit, 0);
  llvm::json::Value plan = jsonOf(d + "/plan.json"), steps = jsonOf(d + "/steps.json");
  llvm::StringSet<> values;
  for (const llvm::json::Value &buffer : *plan.getAsObject()->getArray("buffers")) {
    EXPECT_FALSE(buffer.getAsObject()->getString("why")->empty());
    for (const llvm::json::Value &value : *buffer.getAsObject()->getArray("values"))
      values.insert(*value.getAsObject()->getString("name"));
  }
  size_t points = plan.getAsObject()->getArray("live_bytes")->size();
  for (const llvm::json::Value &step : *steps.getAsArray()) { // both name values as the last module does
    EXPECT_LT(static_cast<size_t>(number(*step.getAsObject(), "op")), points);
    for (const llvm::json::Value &name : *step.getAsObject()->getArray("writes"))
      EXPECT_TRUE(values.contains(*name.getAsString())) << name.getAsString()->str();
  }
}

TEST(Dump, FusionsAreOrderedByWhatTheySave) {
  TemporaryFolder folder;
  std::string d = folder.path("d");
  ASSERT_EQ(runFusor(std::string(kDumpedTrain) + "--dump " + d).exit, 0);
  llvm::json::Value fusions = jsonOf(d + "/fusions.json");
  int64_t before = INT64_MAX;
  for (const llvm::json::Value &value : *fusions.getAsArray()) {
    int64_t saved = number(*value.getAsObject(), "bytes_saved");
    EXPECT_LE(saved, before);
    before = saved;
    EXPECT_FALSE(value.getAsObject()->getArray("values")->empty());
  }
  int64_t most = number(*(*fusions.getAsArray())[0].getAsObject(), "bytes_saved");
  EXPECT_GT(most, 0);
  EXPECT_LT(most, 64 << 20) << "at 16 sequences, not in the middle of what B may be";
}

// Passes, then a step's launches one behind the other, all with a length.
TEST(Dump, TraceIsWhatChromeReads) {
  TemporaryFolder folder;
  std::string d = folder.path("d");
  ASSERT_EQ(runFusor(std::string(kDumpedTrain) + "--dump " + d).exit, 0);
  llvm::json::Value trace = jsonOf(d + "/trace.json"), steps = jsonOf(d + "/steps.json");
  unsigned compile = 0, launches = 0;
  double end = 0;
  for (const llvm::json::Value &value : *trace.getAsObject()->getArray("traceEvents")) {
    const llvm::json::Object &event = *value.getAsObject();
    if (event.getString("ph").getValueOr("") != "X") continue;
    double at = *event.getNumber("ts");
    ++(number(event, "pid") == 1 ? compile : launches);
    if (number(event, "pid") != 2) continue;
    EXPECT_GE(at, end - 1e-3);
    end = at + *event.getNumber("dur");
  }
  EXPECT_GT(compile, 10u);
  EXPECT_EQ(launches, steps.getAsArray()->size());
}

TEST(Dump, InFp8HasTheTraceAndTheReasons) {
  TemporaryFolder folder;
  std::string d = folder.path("d");
  ASSERT_EQ(runFusor(std::string(kDumpedTrain) + "--precision fp8 --fp8-stats --dump " + d).exit, 0);
  EXPECT_EQ(llvm::StringRef(contents(d + "/fp8_trace.jsonl")).count('\n'), 2u);
  EXPECT_TRUE(jsonOf(d + "/fp8_stats.json").getAsObject()->getObject("blocks.0.qkv.input"));
  llvm::json::Value gemms = jsonOf(d + "/gemms.json");
  unsigned fp8 = 0;
  for (const llvm::json::Value &value : *gemms.getAsArray()) {
    const llvm::json::Object &gemm = *value.getAsObject();
    bool isFp8 = *gemm.getBoolean("fp8");
    fp8 += isFp8;
    EXPECT_EQ(gemm.getString("why_not_fp8").hasValue(), !isFp8);
    if (gemm.getString("result").getValueOr("") == "logits") {
      EXPECT_EQ(gemm.getString("why_not_fp8").getValueOr(""), "computes in f32, FP8 takes the place of bf16");
    }
  }
  EXPECT_EQ(fp8, 24u);
}

// Inputs of one run, in forms that `fusor run` reads: it computes the same from them.
TEST(Dump, InputsOfAKernelRunByThemselves) {
  TemporaryFolder folder;
  std::string d = folder.path("d");
  ASSERT_EQ(runFusor(std::string(kDumpedTrain) + "--dump " + d +
                     " --dump-inputs '^(linear_gelu|adamw__f32_96|cross_entropy__)'")
                .exit,
            0);
  unsigned chosen = 0;
  for (const std::string &name : namesIn(d + "/kernels")) {
    std::string place = d + "/kernels/" + name;
    bool has = llvm::sys::fs::exists(place + "/inputs");
    llvm::StringRef n = name;
    EXPECT_EQ(has, n.startswith("linear_gelu") || n.startswith("adamw__f32_96") || n.startswith("cross_entropy__"))
        << name;
    if (!has) continue;
    ++chosen;
    llvm::json::Value inputs = jsonOf(place + "/inputs/inputs.json");
    EXPECT_EQ(number(*inputs.getAsObject()->getObject("symbols"), "B"), 4);
    Ran ran = runFusor("run " + place + "/kernel.fir --device cpu --dim B=4 --inputs " + place + "/inputs --expect " +
                       place + "/inputs --atol 1e-6 --rtol 1e-5");
    EXPECT_EQ(ran.exit, 0) << name << "\n" << ran.err;
  }
  EXPECT_GE(chosen, 4u);
  Ran none = runFusor(std::string(kDumpedTrain) + "--dump " + folder.path("e") + " --dump-inputs nothing_like_it");
  EXPECT_EQ(none.exit, 1);
  EXPECT_SAYS(none.err, "error: --dump-inputs nothing_like_it: no kernel of @train_step has such a name; they are\n  ");
  EXPECT_FALSE(llvm::sys::fs::exists(folder.path("e")));
}

TEST(Dump, OtherVerbsHaveItToo) {
  TemporaryFolder folder;
  std::string c = folder.path("c");
  ASSERT_EQ(runFusor(std::string(kDumpedTrain) + "--save " + c).exit, 0);
  std::ofstream(folder.path("m.fir"))
      << "dim N in 1..8\nfunc @f(%x: f32[N, 16]) -> f32[N, 16] {\n  %g = gelu %x : f32[N, "
         "16]\n  %y = mul %g, %x : f32[N, 16]\n  return %y\n}\n";
  for (const auto &[arguments, function] : std::vector<std::pair<std::string, std::string>>{
           {"generate --device cpu --prompt '3 5 7' --new-tokens 3 --checkpoint " + c, "decode"},
           {"bench train --device cpu --config tiny --batch 2 --iters 2 --warmup 1", "train_step"},
           {"run --device cpu " + folder.path("m.fir"), "f"}}) {
    std::string d = folder.path(function);
    Ran ran = runFusor(arguments + " --dump " + d);
    ASSERT_EQ(ran.exit, 0) << arguments << "\n" << ran.err;
    llvm::json::Value dump = jsonOf(d + "/dump.json");
    EXPECT_EQ(dump.getAsObject()->getString("function").getValueOr(""), function);
    for (const char *file :
         {"plan.json", "steps.json", "gemms.json", "fusions.json", "trace.json", "modules/index.json"})
      EXPECT_NE(jsonOf(d + "/" + file), llvm::json::Value(nullptr)) << file;
    EXPECT_FALSE(namesIn(d + "/kernels").empty());
  }
}

// A folder is there whole, or it is not; what was there is replaced where it is a dump, and left alone where it is not.
TEST(Dump, IsAllOrNothing) {
  TemporaryFolder folder;
  std::string d = folder.path("d"), other = folder.path("other");
  llvm::sys::fs::create_directories(other);
  std::ofstream(other + "/notes.txt") << "mine";
  Ran refused = runFusor(std::string(kDumpedTrain) + "--dump " + other);
  EXPECT_EQ(refused.exit, 1);
  EXPECT_SAYS(refused.err, "other: the folder is not empty and is no dump (it has no dump.json): give a new one");
  EXPECT_EQ(refused.out, ""); // before anything ran
  EXPECT_EQ(contents(other + "/notes.txt"), "mine");
  EXPECT_EQ(runFusor(std::string(kDumpedTrain) + "--dump " + other + "/notes.txt").exit, 1);

  ASSERT_EQ(runFusor(std::string(kDumpedTrain) + "--dump " + d + " --dump-inputs linear_gelu").exit, 0);
  ASSERT_EQ(runFusor(std::string(kDumpedTrain) + "--precision f32 --dump " + d + "/").exit,
            0); // replaces it, inputs and all
  EXPECT_EQ(jsonOf(d + "/dump.json").getAsObject()->getString("precision").getValueOr(""), "f32");
  for (const std::string &name : namesIn(d + "/kernels"))
    EXPECT_FALSE(llvm::sys::fs::exists(d + "/kernels/" + name + "/inputs")) << name;
  // A run that fails leaves the older one.
  EXPECT_EQ(runFusor(std::string(kDumpedTrain) + "--precision fp8 --dump " + d + " --dump-inputs nothing_like_it").exit,
            1);
  EXPECT_EQ(jsonOf(d + "/dump.json").getAsObject()->getString("precision").getValueOr(""), "f32");
  for (const std::string &name : namesIn(folder.path(""))) EXPECT_EQ(name.find(".tmp-"), std::string::npos) << name;
}

// The product that FP8's roofline is measured with is one: all its operations are counted, and it runs.
TEST(Dump, RooflineOfFp8IsAProductInFp8) {
  using namespace fusor::frontend;
  ChosenDevice cpu;
  auto cases = bench::gemmCases(fusor::ir::DType::f8e4m3, bench::GemmDims{"", 64, 32, 48}, cpu, true);
  ASSERT_EQ(cases.size(), 1u);
  auto timing = bench::timeKernel(cases.front(), {}, cpu, 1, 1);
  ASSERT_TRUE(bool(timing)) << llvm::toString(timing.takeError());
  EXPECT_EQ(timing->flops, 2.0 * 64 * 32 * 48);
  EXPECT_GT(timing->minUs, 0);
}

TEST(Dump, WhatCannotBeWrittenIs74) {
  Ran ran = runFusor(std::string(kDumpedTrain) + "--dump /dev/null/folder");
  EXPECT_EQ(ran.exit, 74) << ran.err;
  EXPECT_SAYS(ran.err, "error: cannot write '/dev/null/folder.tmp-");
  EXPECT_EQ(ran.out, "");
}

} // namespace
