// A Program as its users see it: inputs and errors, buckets, state, derived values, limits, cancellation, checks.
#include "program_harness.h"
#include "runtime/execute/program.h"
#include "runtime/execute/run_error.h"

namespace {
using namespace fusor;
using namespace fusor::test;
using runtime::CompileOptions;

const char *kModule = R"(
dim B in 1..64
param @w : f32[4, 3] {init = normal(0.5)}
state @count : f32[]
derived @w2 : f32[4, 3] = neg @w
func @forward(%x: f32[B, 3]) -> f32[B, 4] {
  %y = linear %x, @w2
  return %y
}
func @step(%g: f32[4, 3]) -> f32[] {
  %new = sub @w, %g
  %one = constant {value = 1.0}
  %n = add @count, %one
  return %n, @w = %new, @count = %n
}
)";

std::unique_ptr<runtime::Program> compiled(CompileOptions options = {}) {
  auto program = runtime::compile(parseOrFail(kModule), ir::Target(), options);
  if (program) return std::move(*program);
  ADD_FAILURE() << llvm::toString(program.takeError());
  return nullptr;
}

std::string errorOf(llvm::Error error) { return error ? llvm::toString(std::move(error)) : "success"; }

HostTensor filled(ir::DType dtype, std::vector<int64_t> shape, double value) {
  HostTensor tensor(dtype, shape);
  for (int64_t i = 0; i < tensor.view.elements(); ++i) tensor.set(i, value);
  return tensor;
}

TEST(Program, RunsKeepsStateAndRecomputesDerivedValues) {
  auto program = compiled();
  ASSERT_FALSE(program->initialize(3));
  HostTensor x = filled(ir::DType::f32, {2, 3}, 1), y(ir::DType::f32, {2, 4}), g = filled(ir::DType::f32, {4, 3}, 0.5),
             n(ir::DType::f32, {});
  ASSERT_FALSE(program->run("forward", {x.view}, {y.view}));
  double before = y.at(0);
  ASSERT_FALSE(program->run("step", {g.view}, {n.view}));
  EXPECT_EQ(n.at(0), 1);
  ASSERT_FALSE(program->run("step", {g.view}, {n.view}));
  EXPECT_EQ(n.at(0), 2);
  ASSERT_FALSE(program->run("forward", {x.view}, {y.view}));
  EXPECT_NEAR(y.at(0), before + 3 * 2 * 0.5, 1e-6) << "-(w - 1) summed over 3 columns";
  std::vector<char> w(48);
  ASSERT_FALSE(program->readPersistent("w", w));
  auto values = ir::initialValues(*program->module().persistent("w"), 3, 12);
  EXPECT_NEAR(ir::loadElement(ir::DType::f32, w.data(), 5), values[5] - 1, 1e-6);
}

TEST(Program, PlansOnceForEachSize) {
  auto program = compiled();
  ASSERT_FALSE(program->initialize(1));
  unsigned derived = program->plansBuilt();
  for (int64_t batch : {2, 5, 2, 5, 2}) {
    HostTensor x = filled(ir::DType::f32, {batch, 3}, 1), y(ir::DType::f32, {batch, 4});
    ASSERT_FALSE(program->run("forward", {x.view}, {y.view}));
  }
  EXPECT_EQ(program->plansBuilt(), derived + 2);
}

TEST(Program, ErrorsSayWhatWasExpected) {
  auto program = compiled();
  HostTensor x(ir::DType::f32, {2, 3}), wide(ir::DType::f32, {2, 5}), half(ir::DType::bf16, {2, 3}),
      many(ir::DType::f32, {65, 3}), y(ir::DType::f32, {2, 4});
  EXPECT_EQ(errorOf(program->run("nothing", {}, {})), "there is no function @nothing; the module has @forward, @step");
  EXPECT_EQ(errorOf(program->run("forward", {}, {y.view})), "@forward takes 1 inputs, 0 are given");
  EXPECT_EQ(errorOf(program->run("forward", {wide.view}, {y.view})),
            "input 0, %x, must be f32[B, 3], is f32[2, 5]; dim 1 must be 3");
  EXPECT_EQ(errorOf(program->run("forward", {half.view}, {y.view})), "input 0, %x, must be f32[B, 3], is bf16[2, 3]");
  EXPECT_EQ(errorOf(program->run("forward", {many.view}, {y.view})), "B must be in 1..64, is 65");
  EXPECT_EQ(errorOf(program->run("forward", {x.view}, {x.view})),
            "output 0 of @forward must be f32[2, 4], is f32[2, 3]");
  std::vector<char> few(4);
  EXPECT_EQ(errorOf(program->readPersistent("w", few)), "@w has 48 bytes, 4 are given");
  EXPECT_EQ(errorOf(program->writePersistent("q", few)), "there is no persistent value @q");
}

TEST(Program, TooLittleMemoryNamesThePeakAndWhatLowersIt) {
  CompileOptions options;
  options.memoryLimitBytes = 150; // the persistent values have 100, but each takes a multiple of 64
  auto program = compiled(options);
  HostTensor x(ir::DType::f32, {60, 3}), y(ir::DType::f32, {60, 4});
  llvm::Error error = program->run("forward", {x.view}, {y.view});
  ASSERT_TRUE(error.isA<runtime::OutOfMemoryError>());
  std::string text = llvm::toString(std::move(error));
  EXPECT_NE(text.find("over the limit of 150 bytes: @forward needs"), std::string::npos) << text;
  EXPECT_NE(text.find("a smaller batch"), std::string::npos) << text;
  options.memoryLimitBytes = 50;
  auto refused = runtime::compile(parseOrFail(kModule), ir::Target(), options);
  ASSERT_FALSE(bool(refused));
  llvm::Error whole = refused.takeError();
  EXPECT_TRUE(whole.isA<runtime::OutOfMemoryError>());
  llvm::consumeError(std::move(whole));
}

TEST(Program, StopsWhenCancelled) {
  std::atomic<bool> cancel{false};
  CompileOptions options;
  options.cancel = &cancel;
  auto program = compiled(options);
  HostTensor g = filled(ir::DType::f32, {4, 3}, 0.5), n(ir::DType::f32, {});
  ASSERT_FALSE(program->run("step", {g.view}, {n.view}));
  cancel = true;
  llvm::Error error = program->run("step", {g.view}, {n.view});
  EXPECT_TRUE(error.isA<runtime::CancelledError>());
  llvm::consumeError(std::move(error));
}

TEST(Program, ChecksClustersOnLiveData) {
  CompileOptions options;
  options.check = true;
  auto program = compiled(options);
  ASSERT_FALSE(program->initialize(1));
  HostTensor x = filled(ir::DType::f32, {2, 3}, 1), y(ir::DType::f32, {2, 4}), g = filled(ir::DType::f32, {4, 3}, 0.5),
             n(ir::DType::f32, {});
  EXPECT_EQ(errorOf(program->run("forward", {x.view}, {y.view})), "success");
  EXPECT_EQ(errorOf(program->run("step", {g.view}, {n.view})), "success") << "in place, too";
}

TEST(Program, ListsKernelsAndTimes) {
  CompileOptions options;
  options.profile = true;
  auto program = compiled(options);
  HostTensor g = filled(ir::DType::f32, {4, 3}, 0.5), n(ir::DType::f32, {});
  ASSERT_FALSE(program->run("step", {g.view}, {n.view}));
  ASSERT_EQ(program->kernels().size(), 3u);
  EXPECT_EQ(program->kernels()[0].kind, "contraction");
  EXPECT_EQ(program->kernels()[1].kind, "pointwise");
  EXPECT_NE(program->kernels()[1].ops.find("sub"), std::string::npos);
  EXPECT_EQ(program->stepTimes().size(), 2u);
  EXPECT_EQ(program->kernelsPerRun(), 2u);
  auto plan = program->plan("forward", {{"B", 8}});
  ASSERT_TRUE(bool(plan));
  EXPECT_GT(plan->peakBytes(), 48 + 48 + 4);
}

TEST(Program, NoCudaHere) {
  ir::Target target;
  target.kind = ir::DeviceKind::cuda;
  auto program = runtime::compile(parseOrFail(kModule), target);
  if (program) GTEST_SKIP() << "this build has a CUDA back end";
  llvm::consumeError(program.takeError());
}

} // namespace
