// The public header: programs from a user's side.
#include "frontend/api/fusor.h"
#include "tests/runtime/temporary_folder.h"
#include "gtest/gtest.h"
#include <cmath>

namespace {
using namespace fusor;

Module tinyStep(const Recipe &recipe) {
  Builder b("minigpt");
  Value tokens = b.input("tokens", i32, {dim("B", 1, 64), 16}), targets = b.input("targets", i32, {dim("B"), 16});
  Value logits = nn::gpt(b, tokens, {.width = 32, .layers = 1, .ffn = 64, .context = 16});
  return b.trainingStep(crossEntropy(logits, targets), AdamW{.lr = 1e-2}, recipe);
}

TEST(Api, AProgramRunsByName) {
  Builder b("axpy");
  Value x = b.input("x", f32, {dim("N", 0, 100)}), y = b.input("y", f32, {dim("N")});
  b.output(2.0 * x + y, "z");
  auto program = compile(b.module(), Device::cpu());
  ASSERT_TRUE(bool(program)) << program.error().text();
  std::vector<float> a{1, 2, 3}, c{10, 20, 30};
  Step step = program->run({{"y", Tensor(f32, {3}, c.data())}, {"x", Tensor(f32, {3}, a.data())}});
  ASSERT_FALSE(step.error()) << step.error().text();
  EXPECT_EQ(step.result().at(2), 36);
  EXPECT_EQ(program->device(), "cpu");
  EXPECT_FALSE(program->kernels().empty());
}

TEST(Api, InputsAreCheckedAndTheFirstErrorSticks) {
  Builder b("m");
  b.output(gelu(b.input("x", f32, {4})));
  auto program = compile(b.module(), Device::cpu());
  ASSERT_TRUE(bool(program));
  Tensor x(f32, {4});
  EXPECT_NE(program->run({}).error().text().find("input 'x' (f32[4]) is missing"), std::string::npos);
  Step later = program->run({{"x", x}});
  EXPECT_NE(later.error().text().find("input 'x'"), std::string::npos) << "the first error";
  EXPECT_TRUE(std::isnan(later.loss()));
  auto again = compile(b.module(), Device::cpu());
  EXPECT_NE(again->run({{"x", x}, {"z", x}}).error().text().find("@forward has no input 'z'; it has x"),
            std::string::npos);
}

TEST(Api, TrainingLearnsAndASecondProgramGoesOn) {
  TemporaryFolder folder;
  Module m = tinyStep(Bf16{});
  auto program = compile(m, Device::cpu(), {.seed = 3}), other = compile(m, Device::cpu(), {.seed = 4});
  ASSERT_TRUE(bool(program) && bool(other)) << program.error().text();
  double first = 0, last = 0;
  for (auto [x, y] : syntheticBatches({.batch = 16, .steps = 30, .context = 16})) {
    Step step = program->run({{"tokens", x}, {"targets", y}});
    last = step.loss();
    if (step.index == 1) first = last;
  }
  EXPECT_NEAR(first, std::log(96), 0.2);
  EXPECT_LT(last, first - 1);
  EXPECT_FALSE(program->save(folder.path("c")));
  ASSERT_FALSE(other->load(folder.path("c")));
  Batch batch = syntheticBatches({.batch = 8, .context = 16, .seed = 9}).at(0);
  Step here = program->run({{"tokens", batch.tokens}, {"targets", batch.targets}});
  Step there = other->run({{"tokens", batch.tokens}, {"targets", batch.targets}});
  EXPECT_EQ(here.loss(), there.loss());
  EXPECT_EQ(there.index, 31) << "steps go on from the checkpoint's";
}

TEST(Api, PersistentValuesAreReadAndSet) {
  auto program = compile(tinyStep(F32{}), Device::cpu());
  ASSERT_TRUE(bool(program));
  auto lr = program->get("optimizer.lr");
  ASSERT_TRUE(bool(lr));
  EXPECT_EQ(lr->at(0), static_cast<double>(1e-2f));
  EXPECT_FALSE(program->setLearningRate(5e-3));
  EXPECT_EQ(program->get("optimizer.lr")->at(0), static_cast<double>(5e-3f));
  EXPECT_TRUE(bool(program->get("nothing").error()));
  EXPECT_NE(program->set("emb.weight", Tensor(f32, {2, 2})).text().find("'emb.weight' is f32[96, 32]"),
            std::string::npos);
}

TEST(Api, ErrorsOfTheBuilderArriveAtCompile) {
  Builder b("m");
  b.output(b.input("x", f32, {4}) + b.input("y", f32, {5}));
  unsigned line = __LINE__ - 1;
  auto program = compile(b.module(), Device::cpu());
  ASSERT_FALSE(bool(program));
  EXPECT_NE(program.error().text().find("api_test.cpp:" + std::to_string(line) + ": error: 'add'"), std::string::npos)
      << program.error().text();
  EXPECT_EQ(program.error().exitCode(), 1);
}

TEST(Api, WhatIsNotThereYetOrNotHereSaysSo) {
  auto fp8 = compile(tinyStep(Fp8{DelayedScaling{.format = hybrid, .amaxHistory = 0}}), Device::cpu());
  ASSERT_FALSE(bool(fp8));
  EXPECT_NE(fp8.error().text().find("an amax history has 1 to 65536 steps, is given 0"), std::string::npos);
  auto cuda = compile(tinyStep(F32{}), Device::cuda(99));
  ASSERT_FALSE(bool(cuda));
  EXPECT_EQ(cuda.error().exitCode(), 69);
}

TEST(Api, ModulesAreTextAndBack) {
  Builder b("m");
  b.output(gelu(b.input("x", f32, {4})), "y");
  Module m = b.module();
  auto parsed = Module::parse(m.str());
  ASSERT_TRUE(bool(parsed)) << parsed.error().text();
  EXPECT_EQ(parsed->str(), m.str());
  auto wrong = Module::parse("module @m\nfunc @f(%x: f32[4]) -> f32[4] {\n  return %y\n}\n", "m.fir");
  ASSERT_FALSE(bool(wrong));
  EXPECT_NE(wrong.error().text().find("m.fir:3:"), std::string::npos) << wrong.error().text();
  EXPECT_NE(tinyStep(F32{}).str().find("adamw"), std::string::npos);
}

TEST(Api, FunctionsOfOneModuleShareParameters) {
  Builder b("two");
  nn::Linear fc(b, "fc", 4, 2);
  b.output(fc(b.input("x", f32, {3, 4})));
  b.function("doubled");
  b.output(fc(b.input("x", f32, {3, 4})) * 2.0);
  auto program = compile(b.module(), Device::cpu(), {.seed = 1});
  ASSERT_TRUE(bool(program)) << program.error().text();
  Tensor x(f32, {3, 4});
  for (int i = 0; i < 12; ++i) x.as<float>()[i] = static_cast<float>(i);
  double once = program->run("forward", {{"x", x}}).result().at(3);
  EXPECT_NE(once, 0);
  EXPECT_EQ(program->run("doubled", {{"x", x}}).result().at(3), 2 * once);
}

} // namespace
