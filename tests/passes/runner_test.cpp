// passes/runner and pipeline: verification, blame, printing, names.
#include "ir/ops/op_def.h"
#include "models.h"
#include "passes/pipeline.h"
#include "passes/runner.h"
#include "llvm/ADT/StringSet.h"

using namespace fusor;
using namespace fusor::test;

namespace {

llvm::Expected<bool> breakModule(ir::Module &module, passes::PassContext &) {
  ir::Op &op = *module.functions()[0]->block().ops().begin();
  op.result().setType({ir::DType::bf16, {3}});
  return true;
}
llvm::Expected<bool> doNothing(ir::Module &, passes::PassContext &) { return false; }

TEST(RunnerDeathTest, NamesThePassThatBrokeTheModule) {
  auto module = mlp();
  passes::PassOptions options;
  passes::PassContext context(options);
  passes::Pass pass{"breaker", breakModule, ""};
  EXPECT_EXIT((void)passes::runPasses(*module, pass, context), testing::ExitedWithCode(70),
              "pass 'breaker' left an invalid module: .*linear(.|\n)*fusor opt FILE --passes breaker");
}

TEST(Runner, RefusesAModuleThatIsInvalidFromTheStart) {
  auto module = mlp();
  passes::PassOptions options;
  passes::PassContext context(options);
  ASSERT_TRUE(*breakModule(*module, context));
  passes::Pass pass{"nothing", doNothing, ""};
  EXPECT_NE(llvm::toString(passes::runPasses(*module, pass, context)).find("linear"), std::string::npos);
}

TEST(Runner, ReportsEachPass) {
  auto module = mlp();
  passes::PassOptions options;
  passes::PassContext context(options);
  passes::Pass list[] = {{"nothing", doNothing, ""}, *passes::findPass("gradient")};
  std::string text;
  EXPECT_SUCCESS(passes::runPasses(*module, list, context, [&](const passes::PassReport &report, const ir::Module &m) {
    EXPECT_GE(report.timeMs, 0);
    passes::PassReport timeless = report;
    timeless.timeMs = 0;
    text += printed(timeless, m).substr(0, 50) + "|";
  }));
  EXPECT_EQ(text.substr(0, 36), "// after nothing (unchanged), 0.0 ms");
  EXPECT_NE(text.find("|// after gradient, 0.0 ms\nmodule @mlp"), std::string::npos) << text;
}

TEST(Runner, ListsPassesWhereANameIsUnknown) {
  auto module = mlp();
  passes::PassOptions options;
  passes::PassContext context(options);
  std::string text = llvm::toString(passes::runPasses(*module, {std::string("gradent")}, context));
  EXPECT_EQ(
      text.rfind(
          "error: there is no pass called 'gradent'\nhint: passes are simplify, lift, pack, precision, fp8-insert, gradient",
          0),
      0u)
      << text;
}

TEST(Pipeline, NamesPassesOnceAndGivesReasons) {
  llvm::StringSet<> names;
  for (const passes::Pass &pass : passes::allPasses()) {
    EXPECT_TRUE(names.insert(pass.name).second) << pass.name.str();
    EXPECT_FALSE(pass.why.empty()) << pass.name.str();
    EXPECT_EQ(passes::findPass(pass.name)->run, pass.run);
  }
  EXPECT_EQ(passes::parsePipelineKind("train"), passes::PipelineKind::train);
  EXPECT_EQ(passes::parsePipelineKind("serve"), std::nullopt);
}

TEST(Pipeline, NamesTheFunctionsWhereTheChosenOneIsMissing) {
  auto module = mlp();
  passes::PassOptions options;
  options.function = "backward";
  passes::PassContext context(options);
  EXPECT_EQ(llvm::toString(passes::runPasses(*module, {std::string("gradient")}, context)),
            "error: there is no function @backward; the module has @forward\nhint: name one with --func");
}

} // namespace
