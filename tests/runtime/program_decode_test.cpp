// Decoding on the CPU: the cache is written in place, nothing is planned after the first token, and the answer is that
// of the whole prompt at once.
#include "frontend/nn/modules.h"
#include "passes/context.h"
#include "passes/pipeline.h"
#include "program_harness.h"

namespace {
using namespace fusor;
using namespace fusor::test;

std::unique_ptr<runtime::Program> decoder(ir::DType precision) {
  auto module = nn::gptDecoding(*nn::configuration("tiny"), "decoder", 2);
  passes::PassOptions options;
  options.precision = precision;
  passes::PassContext context(options);
  if (auto error = passes::runPipeline(*module, passes::PipelineKind::infer, context))
    ADD_FAILURE() << llvm::toString(std::move(error));
  runtime::CompileOptions strict;
  strict.strict = true;
  strict.threads = 2;
  auto program = runtime::compile(std::move(module), ir::Target(), strict);
  if (!program) {
    ADD_FAILURE() << llvm::toString(program.takeError());
    return nullptr;
  }
  EXPECT_FALSE((*program)->initialize(1));
  return std::move(*program);
}

HostTensor decode(runtime::Program &program, const std::vector<std::vector<int>> &tokens, int position) {
  auto length = static_cast<int64_t>(tokens[0].size());
  HostTensor ids(ir::DType::i32, {2, length}), at(ir::DType::i32, {}), logits(ir::DType::f32, {2, 96});
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t t = 0; t < length; ++t) ids.set(b * length + t, tokens[b][t]);
  at.set(0, position);
  std::vector<runtime::TensorView> inputs;
  for (ir::Value argument : program.module().function("decode")->block().arguments())
    inputs.push_back(argument.rank() ? ids.view : at.view);
  auto types = program.resultTypes("decode", {{"T", length}});
  if (!types || types->size() != 1 || (*types)[0].shape != logits.view.shape) {
    ADD_FAILURE() << "@decode gives logits [2, 96]";
    llvm::consumeError(types.takeError());
    return logits;
  }
  logits = HostTensor((*types)[0].dtype, (*types)[0].shape);
  if (auto error = program.run("decode", inputs, {logits.view})) ADD_FAILURE() << llvm::toString(std::move(error));
  return logits;
}

void compareTokenByToken(ir::DType precision, double tolerance) {
  std::vector<std::vector<int>> prompt = {{3, 5, 7, 9, 11, 13, 15, 17}, {90, 2, 41, 8, 8, 1, 0, 64}};
  auto whole = decoder(precision), steps = decoder(precision);
  ASSERT_TRUE(whole && steps);
  HostTensor expected = decode(*whole, prompt, 0), got;
  unsigned plans = 0;
  for (int t = 0; t < 8; ++t) {
    got = decode(*steps, {{prompt[0][t]}, {prompt[1][t]}}, t);
    if (t == 0) plans = steps->plansBuilt();
  }
  EXPECT_EQ(steps->plansBuilt(), plans);
  for (int64_t i = 0; i < got.view.elements(); ++i) ASSERT_NEAR(got.at(i), expected.at(i), tolerance) << i;
  auto plan = steps->plan("decode", {{"T", 1}});
  ASSERT_TRUE(bool(plan));
  EXPECT_TRUE(plan->updateCopies.empty()) << plan->text();
}

TEST(ProgramDecode, TokenByTokenIsTheWholePromptF32) { compareTokenByToken(ir::DType::f32, 1e-4); }
TEST(ProgramDecode, TokenByTokenIsTheWholePromptBf16) { compareTokenByToken(ir::DType::bf16, 2e-2); }

} // namespace
