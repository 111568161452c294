// What an FP8 run can be asked for beyond the recipe: numbers of what was lost, finite amaxes alone, measured scales,
// layers chosen by measuring; and generation with a checkpoint's scales.
#include "frontend/api/checkpoint.h"
#include "frontend/api/compile_module.h"
#include "frontend/api/fp8_select.h"
#include "frontend/api/fusor.h"
#include "frontend/api/generator.h"
#include "frontend/text/parser.h"
#include "tests/frontend/fp8_runs.h"
#include "tests/runtime/temporary_folder.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>

namespace {
using namespace fusor;
using namespace fusor::frontend;
using tests::Fp8Outcome, tests::fp8Run, tests::trainFp8;

// --- a layer whose tensors are written by hand: x [4, 16] times @fc.weight, then a head

constexpr const char *kLayer = R"(
param @fc.weight : f32[16, 16] {init = normal(0.02)}
param @head.weight : f32[4, 16] {init = normal(0.02)}
func @forward(%x: f32[4, 16]) -> f32[] {
  %h = linear %x, @fc.weight : f32[4, 16]
  %g = gelu %h {form = tanh} : f32[4, 16]
  %y = linear %g, @head.weight : f32[4, 4]
  %s = mul %y, %y : f32[4, 4]
  %loss = mean %s {dims = [0, 1]} : f32[]
  return %loss
}
)";

std::unique_ptr<runtime::Program> layerProgram(passes::DelayedScaling recipe, int64_t accumulate = 1) {
  auto module = parseModule(kLayer, "layer.fir");
  if (!module) return ADD_FAILURE() << llvm::toString(module.takeError()), nullptr;
  CompileRequest request;
  request.pipeline = passes::PipelineKind::train;
  request.passes.precision = ir::DType::bf16;
  request.passes.fp8 = recipe, request.passes.accumulate = accumulate;
  request.program.strict = true;
  auto compiled = compileModule(std::move(*module), {}, std::move(request));
  if (!compiled) return ADD_FAILURE() << llvm::toString(compiled.takeError()), nullptr;
  EXPECT_FALSE(bool(compiled->program->initialize(1)));
  return std::move(compiled->program);
}

void write(runtime::Program &program, const char *name, llvm::ArrayRef<float> values) {
  EXPECT_FALSE(bool(
      program.writePersistent(name, {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float)})));
}
std::vector<float> read(runtime::Program &program, const std::string &name) {
  std::vector<float> values(*program.persistentBytes(name) / 4);
  EXPECT_FALSE(bool(program.readPersistent(name, {reinterpret_cast<char *>(values.data()), values.size() * 4})));
  return values;
}

/// Runs @train_step (or @accumulate); its results, the loss first.
std::vector<float> step(runtime::Program &program, std::vector<float> x, llvm::StringRef function = "train_step") {
  std::vector<runtime::TensorView> types = *program.resultTypes(function, {});
  std::vector<float> results(types.size());
  for (size_t i = 0; i < types.size(); ++i) types[i].data = &results[i];
  auto error = program.run(function, {{ir::DType::f32, {4, 16}, x.data()}}, types);
  EXPECT_FALSE(bool(error)) << llvm::toString(std::move(error));
  return results;
}

std::vector<float> filled(float value, std::initializer_list<float> first = {}) {
  std::vector<float> x(64, value);
  std::copy(first.begin(), first.end(), x.begin());
  return x;
}

TEST(Fp8Stats, AreExactForTensorsWrittenByHand) {
  auto program = layerProgram({.returnStats = true});
  ASSERT_TRUE(program);
  Fp8StatsReader reader(*program);
  ASSERT_EQ(reader.stats().size(), 3u);
  EXPECT_EQ(reader.stats()[0].tensor, "fc.input");
  EXPECT_EQ(reader.stats()[1].tensor, "fc.weight");
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();
  // With scale 1 in E4M3: halves of a step round to even, and 464 is half a step above 448, 2^-10 half of the smallest.
  std::vector<float> x = filled(
      1, {448, -464, 464.00003f, -500, kInf, kNaN, 0, -0.0f, 0x1p-9f, -0x1p-10f, 0x1.000002p-10f, 1e-40f, -1e-20f});
  std::vector<float> weight(256, 0.5f);
  weight[3] = -465, weight[9] = 1e-6f, weight[200] = 0, weight[255] = 1e6f;
  write(*program, "fc.weight", weight);
  std::vector<float> results = step(*program, x);
  ASSERT_EQ(results.size(), 7u); // the loss, and two numbers a tensor
  EXPECT_EQ(results[1], 3 / 64.0f) << "464.00003, -500, Inf";
  EXPECT_EQ(results[2], 3 / 64.0f) << "-2^-10, 1e-40, -1e-20";
  EXPECT_EQ(results[3], 2 / 256.0f);
  EXPECT_EQ(results[4], 1 / 256.0f);

  write(*program, "fc.input.scale", {0.5f});
  results = step(*program, filled(1, {900, 928, 928.0001f, 0x1p-9f, 0x1.8p-9f}));
  EXPECT_EQ(results[1], 1 / 64.0f);
  EXPECT_EQ(results[2], 1 / 64.0f);

  llvm::SmallVector<runtime::TensorView, 8> views;
  reader.addResults(views);
  EXPECT_EQ(views.size(), 6u);
}

TEST(Fp8Stats, OfARunAreThoseOfItsLastStep) {
  TrainSettings s = fp8Run("tiny", 4);
  s.fp8Stats = true;
  Fp8Outcome with = trainFp8(s);
  ASSERT_EQ(with.summary.fp8Stats.size(), 24u);
  double lost = 0;
  for (const Fp8Stats &stats : with.summary.fp8Stats) {
    EXPECT_GE(stats.clipped, 0) << stats.tensor;
    EXPECT_LE(stats.clipped, 0.05) << stats.tensor << ": the scale follows the amax of the step before";
    EXPECT_LE(stats.underflow, 1) << stats.tensor;
    lost += stats.underflow;
  }
  EXPECT_GT(lost, 0);
  s.fp8Stats = false;
  Fp8Outcome without = trainFp8(s);
  EXPECT_EQ(with.losses, without.losses);
  EXPECT_TRUE(without.summary.fp8Stats.empty());
}

// --- skipNonFinite

TEST(Fp8SkipNonFinite, AnInfiniteAmaxDoesNotFreezeTheScale) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (bool skips : {false, true}) {
    auto program = layerProgram({.amaxHistory = 4, .skipNonFinite = skips});
    ASSERT_TRUE(program);
    step(*program, filled(2));
    EXPECT_EQ(read(*program, "fc.input.scale")[0], 224);
    step(*program, filled(2, {kInf}));
    EXPECT_EQ(read(*program, "fc.input.scale")[0], 224) << "it is kept in that step either way";
    EXPECT_EQ(std::isinf(read(*program, "fc.input.amax_history")[3]), !skips);
    step(*program, filled(4));
    EXPECT_EQ(read(*program, "fc.input.scale")[0], skips ? 112 : 224) << "Transformer Engine waits for four steps";
    EXPECT_EQ(read(*program, "fc.input.amax_history"),
              skips ? std::vector<float>({0, 0, 2, 4}) : std::vector<float>({0, 2, kInf, 4}));
  }
}

TEST(Fp8SkipNonFinite, NorWithMicroBatches) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  auto program = layerProgram({.amaxHistory = 4, .skipNonFinite = true}, 2);
  ASSERT_TRUE(program);
  step(*program, filled(2, {kInf}), "accumulate");
  step(*program, filled(2));
  EXPECT_EQ(read(*program, "fc.input.amax_history"), std::vector<float>(4, 0)) << "slot 0 does not keep it";
  step(*program, filled(3), "accumulate");
  step(*program, filled(2));
  EXPECT_EQ(read(*program, "fc.input.amax_history"), std::vector<float>({0, 0, 0, 3}));
}

// --- calibrate

TEST(Fp8Calibrate, TheFirstStepUsesMeasuredScales) {
  TemporaryFolder folder;
  TrainSettings s = fp8Run("tiny", 1);
  s.fp8Stats = true;
  Fp8Outcome plain = trainFp8(s);
  s.fp8->calibrate = true, s.saveFolder = folder.path("c");
  Fp8Outcome calibrated = trainFp8(s);
  ASSERT_EQ(calibrated.notes.size(), 1u);
  EXPECT_EQ(calibrated.notes[0], "FP8 scales measured on the data of step 1, in bf16");
  auto lost = [](const Fp8Outcome &outcome) {
    double sum = 0;
    for (const Fp8Stats &stats : outcome.summary.fp8Stats) sum += stats.underflow + stats.clipped;
    return sum / static_cast<double>(outcome.summary.fp8Stats.size());
  };
  EXPECT_GT(lost(plain), 0.03) << "gradients are far below 1";
  EXPECT_LT(lost(calibrated), 0.003);
  TrainSettings wide = fp8Run("tiny", 1);
  wide.fp8.reset();
  EXPECT_NEAR(calibrated.losses[0], trainFp8(wide).losses[0], 2e-3);
  // The parameters, the optimizer and the histories were not touched: one step is one amax and one update.
  const Fp8State &input = calibrated.summary.fp8[0];
  EXPECT_EQ(std::count_if(input.history.begin(), input.history.end(), [](float amax) { return amax != 0; }), 1);
  EXPECT_EQ(calibrated.losses.size(), 1u);

  // What a checkpoint has is not measured again; what it has not, is.
  s.resumeFolder = s.saveFolder, s.steps = 2;
  Fp8Outcome resumed = trainFp8(s);
  EXPECT_TRUE(resumed.notes.empty()) << llvm::join(resumed.notes, "\n");
  llvm::sys::fs::remove(s.resumeFolder + "/fp8.safetensors");
  s.steps = 3;
  resumed = trainFp8(s);
  ASSERT_EQ(resumed.notes.size(), 2u) << llvm::join(resumed.notes, "\n");
  EXPECT_EQ(resumed.notes[0], "the checkpoint has no FP8 state: scales are measured before the first step");
  EXPECT_EQ(resumed.notes[1], "FP8 scales measured on the data of step 3, in bf16");
}

TEST(Fp8Calibrate, AProgramOfTheApiMeasuresToo) {
  Builder b("minigpt");
  Value tokens = b.input("tokens", i32, {dim("B", 1, 64), 16}), targets = b.input("targets", i32, {dim("B"), 16});
  Value logits = nn::gpt(b, tokens, {.width = 32, .layers = 1, .ffn = 64, .context = 16});
  Value loss = crossEntropy(logits, targets);
  auto [x, y] = syntheticBatches({.batch = 8, .steps = 1, .context = 16}).at(0);
  double losses[3];
  int i = 0;
  for (const Recipe &recipe : {Recipe(Bf16{}), Recipe(Fp8{DelayedScaling{.calibrate = true}}), Recipe(Fp8{})}) {
    auto program = compile(b.trainingStep(loss, AdamW{}, recipe), Device::cpu(), {.seed = 3, .strict = true});
    ASSERT_TRUE(bool(program)) << program.error().text();
    auto first = program->run({{"tokens", x}, {"targets", y}});
    ASSERT_FALSE(first.error()) << first.error().text();
    losses[i++] = first.loss();
    EXPECT_EQ(first.index, 1);
  }
  EXPECT_LT(std::fabs(losses[1] - losses[0]), 2e-3);
}

// --- select

TEST(Fp8Select, WhereFp8IsEmulatedAllStaysInBf16AndSaysSo) {
  TrainSettings s = fp8Run("tiny", 2);
  s.fp8->select = "auto";
  Fp8Outcome outcome = trainFp8(s);
  ASSERT_EQ(outcome.notes.size(), 1u);
  EXPECT_EQ(outcome.notes[0], "--fp8-select auto: cpu only emulates FP8, which is never faster, so all 8 linear layers "
                              "stay in bf16; with --fp8-select all they are trained in FP8, emulated");
  EXPECT_EQ(outcome.summary.gemms.at("fp8"), 0);
  EXPECT_EQ(outcome.summary.gemms.at("bf16"), 24);
  EXPECT_EQ(outcome.summary.layersInBf16.size(), 8u);
  s.fp8.reset();
  EXPECT_EQ(trainFp8(s).losses, outcome.losses);
}

TEST(Fp8Select, FollowsTheTimes) {
  std::vector<LinearShape> shapes = {{64, 32, 16, {"a.fc1", "b.fc1"}}, {64, 16, 32, {"a.fc2"}}};
  Fp8Selection selection = selectionOf(shapes, {{.bf16 = 10, .fp8 = 6, .quantiseUs = 3}, {10, 6, 4}});
  ASSERT_EQ(selection.inBf16.size(), 1u);
  EXPECT_EQ(selection.inBf16.at("a.fc2"), "FP8 was measured and is not faster, 64 x 16 x 32: 10.0 us in bf16, 6.0 us "
                                          "in FP8 and 4.0 us to quantise");
  EXPECT_EQ(selection.notes[0], "--fp8-select auto: a.fc1 and 1 more in FP8, 64 x 32 x 16: 10.0 us in bf16, 6.0 us in "
                                "FP8 and 3.0 us to quantise");

  // What the pass makes of it; and a resumed run keeps it, measured or not.
  TemporaryFolder folder;
  TrainSettings s = fp8Run("tiny", 2);
  s.fp8->select = "auto", s.fp8->inBf16.emplace();
  (*s.fp8->inBf16)["blocks.0.proj"] = "it is a test";
  s.saveFolder = folder.path("c");
  Fp8Outcome outcome = trainFp8(s);
  EXPECT_TRUE(outcome.notes.empty());
  EXPECT_EQ(outcome.summary.gemms.at("fp8"), 21);
  EXPECT_EQ(outcome.summary.gemms.at("bf16"), 3);
  auto info = readCheckpointInfo(s.saveFolder);
  ASSERT_TRUE(bool(info));
  TrainSettings read;
  ASSERT_FALSE(bool(fromCheckpointInfo(read, *info)));
  EXPECT_EQ(read.fp8->select, "auto");
  EXPECT_EQ(read.fp8->inBf16, s.fp8->inBf16);
}

// The measurement itself, on a CPU that says it multiplies FP8: each shape once, and decisions as its times are.
TEST(Fp8Select, MeasuresEachShapeOnce) {
  passes::PassOptions options;
  options.precision = ir::DType::bf16, options.fp8.emplace();
  ir::SymbolValues symbols;
  symbols["B"] = 1;
  auto module = nn::gptForward(*nn::configuration("tiny"));
  DeviceSettings settings{.device = "cpu", .strict = true};
  ChosenDevice device{{}, 0, "cpu", ""};
  device.target.hasFp8 = true;
  for (bool wgrad : {true, false}) {
    options.fp8->wgrad = wgrad;
    auto selection = selectFp8(*module, options, symbols, settings, device);
    ASSERT_TRUE(bool(selection)) << llvm::toString(selection.takeError());
    ASSERT_EQ(selection->notes.size(), 4u);
    size_t inBf16 = 0;
    for (const std::string &note : selection->notes) inBf16 += llvm::StringRef(note).contains("1 more in bf16") ? 2 : 0;
    EXPECT_EQ(selection->inBf16.size(), inBf16) << llvm::join(selection->notes, "\n");
  }
}

TEST(Fp8Select, ShapesAreThoseOfTheModel) {
  passes::PassOptions options;
  options.precision = ir::DType::bf16, options.fp8.emplace();
  ir::SymbolValues symbols;
  symbols["B"] = 4;
  auto shapes = linearShapes(*nn::gptForward(*nn::configuration("tiny")), options, symbols);
  ASSERT_TRUE(bool(shapes)) << llvm::toString(shapes.takeError());
  ASSERT_EQ(shapes->size(), 4u);
  EXPECT_EQ((*shapes)[0].rows, 128);
  EXPECT_EQ((*shapes)[0].n, 192);
  EXPECT_EQ((*shapes)[0].k, 64);
  EXPECT_EQ((*shapes)[0].layers, (std::vector<std::string>{"blocks.0.qkv", "blocks.1.qkv"}));
}

// --- generate

TEST(Fp8Generate, UsesTheScalesOfTheCheckpoint) {
  TemporaryFolder folder;
  TrainSettings s = fp8Run("tiny", 150);
  s.batch = 8, s.lr = 3e-3, s.saveFolder = folder.path("c");
  Fp8Outcome outcome = trainFp8(s);
  EXPECT_LT(*outcome.summary.finalLoss, 1.0);
  GenerateSettings g;
  g.checkpoint = s.saveFolder, g.prompt = {10, 13, 16, 19, 22, 25, 28, 31}, g.newTokens = 16;
  g.device.device = "cpu", g.device.strict = true;
  auto wide = generate(g);
  g.fp8 = true;
  auto narrow = generate(g);
  ASSERT_TRUE(wide && narrow) << llvm::toString(narrow.takeError());
  EXPECT_EQ(narrow->tokens, wide->tokens);
  g.fp8Weights = true, g.saveFolder = folder.path("narrow"); // weights in FP8 alone, products in FP8
  auto both = generate(g);
  ASSERT_TRUE(bool(both)) << llvm::toString(both.takeError());
  EXPECT_EQ(both->tokens, wide->tokens);
  EXPECT_GT(both->weightBytes.fp8, 0);
  g.checkpoint = g.saveFolder, g.saveFolder.clear();
  auto again = generate(g);
  ASSERT_TRUE(bool(again)) << llvm::toString(again.takeError());
  EXPECT_EQ(again->tokens, wide->tokens);

  auto problem = [&](const GenerateSettings &settings) {
    auto made = generate(settings);
    return made ? std::string() : llvm::toString(made.takeError());
  };
  llvm::sys::fs::remove(g.checkpoint + "/fp8.safetensors");
  EXPECT_NE(problem(g).find("has no 'blocks.0.qkv.input"), std::string::npos) << problem(g);
  TrainSettings plain = fp8Run("tiny", 1);
  plain.fp8.reset(), plain.saveFolder = folder.path("plain");
  trainFp8(plain);
  g.checkpoint = plain.saveFolder;
  EXPECT_NE(problem(g).find("was not trained in FP8, so it has no scales of activations"), std::string::npos)
      << problem(g);
}

} // namespace
