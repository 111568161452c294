// FP8 training against the numpy oracle of shared/reference, for recipes that Transformer Engine's traces do not have,
// and for sizes that are multiples of nothing.
#include "frontend/api/checkpoint.h"
#include "frontend/api/compile_module.h"
#include "frontend/api/config_file.h"
#include "frontend/api/trainer.h"
#include "runtime/checkpoint/npy.h"
#include "runtime/checkpoint/safetensors.h"
#include "tests/runtime/temporary_folder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sys/wait.h>

namespace {
using namespace fusor;
using namespace fusor::frontend;

std::string textOf(const std::string &path) {
  auto file = llvm::MemoryBuffer::getFile(path, false, false);
  return file ? (*file)->getBuffer().str() : "";
}

/// A model, its first weights and its tokens, in the files that both sides read.
class Case {
public:
  nn::GptConfig config;
  int64_t batch, steps;
  double lr =
      1e-4; // an element whose gradient underflows in one run alone moves by 2 lr: little beside an amax of 0.08

  Case(nn::GptConfig config, int64_t batch, int64_t steps) : config(config), batch(batch), steps(steps) {
    CompileRequest request;
    auto compiled = compileModule(nn::gptForward(config), {}, std::move(request));
    EXPECT_TRUE(bool(compiled));
    EXPECT_FALSE(bool(compiled->program->initialize(11)));
    EXPECT_FALSE(bool(saveCheckpoint(*compiled->program, path("init"), llvm::json::Object{{"step", 0}, {"seed", 11}})));
    llvm::sys::fs::rename(path("init/model.safetensors"), path("init.safetensors"));
    std::vector<int32_t> tokens(steps * batch * (config.context + 1));
    uint32_t state = 12345;
    for (int32_t &token : tokens) {
      state = state * 1664525u + 1013904223u;
      token = static_cast<int32_t>((state >> 8) % config.vocab);
    }
    EXPECT_FALSE(bool(runtime::writeNpy(path("tokens.npy"), ir::DType::i32, {steps, batch, config.context + 1},
                                        {reinterpret_cast<const uint8_t *>(tokens.data()), tokens.size() * 4})));
  }
  std::string path(const std::string &name) const { return folder_.path(name); }

  TrainSettings settings(const passes::DelayedScaling &recipe) const {
    TrainSettings s;
    s.config = config, s.fp8 = recipe, s.lr = lr;
    s.initFile = path("init.safetensors"), s.tokensFile = path("tokens.npy"), s.fp8Trace = path("trace.jsonl");
    s.device.device = "cpu", s.device.strict = true;
    return s;
  }

private:
  TemporaryFolder folder_;
};

struct Training {
  std::vector<double> losses;
  std::vector<llvm::json::Object> states; // tensor -> {"amax", "scale", "amax_history"}, a step
};

Training tracedRun(const TrainSettings &settings) {
  Training run;
  auto summary = train(settings, {.step = [&](const StepReport &r) { run.losses.push_back(r.loss); }});
  if (!summary) ADD_FAILURE() << llvm::toString(summary.takeError());
  auto file = llvm::MemoryBuffer::getFile(settings.fp8Trace);
  if (!file) return run;
  for (llvm::line_iterator line(**file); !line.is_at_eof(); ++line) {
    auto json = llvm::json::parse(*line);
    EXPECT_TRUE(bool(json));
    if (json) run.states.push_back(*json->getAsObject()->getObject("state"));
  }
  return run;
}

/// The oracle's runs of the same case, a recipe each; nothing, with the reason in `why`, where it cannot run.
std::vector<Training> oracle(const Case &c, llvm::ArrayRef<passes::DelayedScaling> recipes, std::string &why) {
  const std::string reference = FUSOR_SOURCE_DIR "/../shared/reference";
  const char *python = std::getenv("FUSOR_PYTHON");
  if (!llvm::sys::fs::exists(reference + "/oracle.py"))
    return why = "shared/reference is not here", std::vector<Training>();
  llvm::json::Array list;
  for (const passes::DelayedScaling &r : recipes)
    list.push_back(
        llvm::json::Object{{"format", r.format == passes::Fp8Format::hybrid ? "HYBRID" : "E4M3"},
                           {"amax_history_len", r.amaxHistory},
                           {"amax_compute_algo", r.amaxAlgo == passes::AmaxAlgo::max ? "max" : "most_recent"},
                           {"margin", r.margin}});
  llvm::json::Object object{{"config", toJson(c.config)}, {"recipes", std::move(list)}, {"lr", c.lr}};
  std::ofstream(c.path("case.json")) << llvm::formatv("{0}", llvm::json::Value(std::move(object))).str();
  std::string command = std::string(python ? python : "python3") +
                        " " FUSOR_SOURCE_DIR "/tests/frontend/fp8_oracle.py " + reference + " " + c.path("") + " >" +
                        c.path("oracle.json") + " 2>" + c.path("oracle.err");
  int status = std::system(("PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=2 " + command).c_str());
  std::string text = textOf(c.path("oracle.json"));
  if (WIFEXITED(status) && (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127))
    return why = "the oracle needs python3 with numpy and ml_dtypes (FUSOR_PYTHON names one): " + text,
           std::vector<Training>();
  auto json = llvm::json::parse(text);
  if (!json) {
    llvm::consumeError(json.takeError());
    ADD_FAILURE() << textOf(c.path("oracle.err"));
    return {};
  }
  std::vector<Training> runs;
  for (const llvm::json::Value &value : *json->getAsArray()) {
    Training &run = runs.emplace_back();
    for (const llvm::json::Value &loss : *value.getAsObject()->getArray("losses"))
      run.losses.push_back(*loss.getAsNumber());
    for (const llvm::json::Value &state : *value.getAsObject()->getArray("states"))
      run.states.push_back(*state.getAsObject());
  }
  return runs;
}

double number(const llvm::json::Object &state, llvm::StringRef tensor, llvm::StringRef key) {
  const llvm::json::Object *object = state.getObject(tensor);
  return object ? object->getNumber(key).getValueOr(NAN) : NAN;
}

// The bounds of shared/reference/README.md.
void expectClose(const Training &found, const Training &expected) {
  ASSERT_EQ(found.losses.size(), expected.losses.size());
  ASSERT_EQ(found.states.size(), expected.states.size());
  for (size_t n = 0; n < found.losses.size(); ++n) {
    EXPECT_NEAR(found.losses[n], expected.losses[n], 1e-2) << "step " << n + 1;
    ASSERT_EQ(found.states[n].size(), expected.states[n].size());
    for (const auto &entry : expected.states[n]) {
      llvm::StringRef tensor = entry.first, kind = tensor.rsplit('.').second;
      double tolerance = kind == "weight" ? (n ? 5e-3 : 1e-6) : kind == "input" ? 0.06 : 0.15;
      for (const char *key : {"amax", "scale"})
        EXPECT_NEAR(number(found.states[n], tensor, key) / number(expected.states[n], tensor, key), 1, tolerance)
            << tensor.str() << " " << key << " in step " << n + 1;
      EXPECT_EQ(found.states[n].getObject(tensor)->getArray("amax_history")->size(),
                entry.second.getAsObject()->getArray("amax_history")->size());
    }
  }
}

TEST(Fp8Oracle, EveryRecipe) {
  Case c(*nn::configuration("tiny"), 4, 6);
  std::vector<passes::DelayedScaling> recipes;
  int64_t number = 0;
  for (int64_t history : {1, 4, 16, 1024})
    for (auto format : {passes::Fp8Format::hybrid, passes::Fp8Format::e4m3}) {
      // each history with both formats, each margin with both algorithms
      auto algo = number / 2 % 2 ? passes::AmaxAlgo::mostRecent : passes::AmaxAlgo::max;
      recipes.push_back(
          {.format = format, .amaxHistory = history, .amaxAlgo = algo, .margin = (number + number / 4) % 4});
      ++number;
    }
  std::string why;
  std::vector<Training> expected = oracle(c, recipes, why);
  if (!why.empty()) GTEST_SKIP() << why;
  ASSERT_EQ(expected.size(), recipes.size());
  for (size_t i = 0; i < recipes.size(); ++i) {
    SCOPED_TRACE(llvm::formatv("history {0}, margin {1}, {2}, {3}", recipes[i].amaxHistory, recipes[i].margin,
                               recipes[i].format == passes::Fp8Format::hybrid ? "hybrid" : "e4m3",
                               recipes[i].amaxAlgo == passes::AmaxAlgo::max ? "max" : "most_recent")
                     .str());
    expectClose(tracedRun(c.settings(recipes[i])), expected[i]);
  }
}

const nn::GptConfig kRagged{.vocab = 97, .width = 100, .heads = 5, .layers = 2, .ffn = 390, .context = 17};

TEST(Fp8Ragged, TrainsAndAmaxesAreThoseOfTheTensors) {
  Case c(kRagged, 3, 4);
  TrainSettings s = c.settings({.amaxHistory = 4});
  s.device.check = true; // each kernel, amaxes included, beside its body in float64, which knows no padding
  Training run = tracedRun(s);
  ASSERT_EQ(run.states.size(), 4u);
  EXPECT_NEAR(run.losses[0], std::log(97), 0.3);
  auto init = runtime::SafetensorsFile::open(c.path("init.safetensors"));
  ASSERT_TRUE(bool(init));
  unsigned weights = 0;
  for (const auto &tensor : init->tensors()) {
    llvm::StringRef name = tensor.info.name;
    if (!name.startswith("blocks.") || tensor.info.shape.size() != 2) continue;
    float amax = 0;
    for (size_t i = 0; i < tensor.bytes.size() / 4; ++i) {
      float value;
      std::memcpy(&value, tensor.bytes.data() + 4 * i, 4);
      amax = std::max(amax, std::fabs(value));
    }
    EXPECT_EQ(number(run.states[0], name, "amax"), amax) << name.str();
    EXPECT_EQ(number(run.states[0], name, "scale"), 448 / amax) << name.str();
    ++weights;
  }
  EXPECT_EQ(weights, 8u);
}

TEST(Fp8Ragged, FollowsTheOracle) {
  Case c(kRagged, 3, 4);
  std::vector<passes::DelayedScaling> recipes{{.amaxHistory = 4}, {.format = passes::Fp8Format::e4m3, .margin = 1}};
  std::string why;
  std::vector<Training> expected = oracle(c, recipes, why);
  if (!why.empty()) GTEST_SKIP() << why;
  ASSERT_EQ(expected.size(), recipes.size());
  for (size_t i = 0; i < recipes.size(); ++i) expectClose(tracedRun(c.settings(recipes[i])), expected[i]);
}

} // namespace
