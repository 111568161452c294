#include "tests/gpu/tiny.h"
#include "llvm/Support/FormatVariadic.h"

#include <gtest/gtest.h>

using namespace fusor;
using namespace fusor::runtime;
using namespace fusor::tests;

namespace {

#define NEED_GPU()                                                                                                     \
  if (std::string why = whyNoGpu(); !why.empty()) GTEST_SKIP() << why

std::vector<char> everything(Program &program) {
  std::vector<char> all;
  for (const auto &persistent : program.module().persistents()) {
    std::vector<char> bytes(llvm::cantFail(program.persistentBytes(persistent->name)));
    if (auto error = program.readPersistent(persistent->name, bytes)) ADD_FAILURE() << llvm::toString(std::move(error));
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

// Each kernel of a step against its body in float64, on live data: ragged batches, both precisions, both kinds of GEMM.
TEST(Gpu, EveryKernelComputesItsBody) {
  NEED_GPU();
  for (bool ownGemm : {false, true})
    for (ir::DType precision : {ir::DType::f32, ir::DType::bf16}) {
      CompileOptions options;
      options.check = true, options.ownGemm = ownGemm, options.strict = true;
      PROGRAM(program, trainingProgram(tiny(), precision, gpuTarget(), options));
      for (int64_t batch : {1, 3, 17}) step(program, batch, batch);
      if (HasFailure()) FAIL() << ir::name(precision).str() << (ownGemm ? ", own GEMMs" : ", cuBLASLt");
    }
}

TEST(Gpu, TrainsLikeTheCpu) {
  NEED_GPU();
  for (auto [precision, tolerance] : {std::pair{ir::DType::f32, 2e-4}, {ir::DType::bf16, 1e-2}}) {
    PROGRAM(cpu, trainingProgram(tiny(), precision, ir::Target{}));
    PROGRAM(gpu, trainingProgram(tiny(), precision, gpuTarget()));
    EXPECT_TRUE(gpu.fallbacks().empty()) << gpu.fallbacks()[0].where << ": " << gpu.fallbacks()[0].reason;
    unsigned plans = 0; // after the first step: the step's, and one for each derived value
    for (int64_t i = 0; i < 12; ++i) {
      EXPECT_NEAR(step(gpu, 5, i), step(cpu, 5, i), tolerance) << ir::name(precision).str() << ", step " << i;
      if (i == 0) plans = gpu.plansBuilt();
    }
    EXPECT_EQ(gpu.launchesPerRun(), 1u);
    EXPECT_EQ(gpu.plansBuilt(), plans);
  }
}

TEST(Gpu, GraphAndEagerAndTwoRunsAreBitEqual) {
  NEED_GPU();
  CompileOptions eager;
  eager.graphs = false;
  PROGRAM(first, trainingProgram(tiny(), ir::DType::bf16, gpuTarget()));
  PROGRAM(second, trainingProgram(tiny(), ir::DType::bf16, gpuTarget()));
  PROGRAM(launched, trainingProgram(tiny(), ir::DType::bf16, gpuTarget(), eager));
  for (int64_t i = 0; i < 20; ++i) {
    int64_t batch = i % 3 == 0 ? 4 : 9; // shapes take turns
    float loss = step(first, batch, i);
    EXPECT_EQ(loss, step(second, batch, i));
    EXPECT_EQ(loss, step(launched, batch, i));
  }
  auto bytes = everything(first);
  EXPECT_EQ(bytes, everything(second));
  EXPECT_EQ(bytes, everything(launched));
}

TEST(Gpu, AnyGpusInstructionsGiveTheSameLosses) {
  NEED_GPU();
  CompileOptions own;
  own.ownGemm = true;
  PROGRAM(best, trainingProgram(tiny(), ir::DType::bf16, gpuTarget()));
  PROGRAM(simt, trainingProgram(tiny(), ir::DType::bf16, gpuTarget(ir::ArchTier::simt), own));
  for (int64_t i = 0; i < 8; ++i) EXPECT_NEAR(step(best, 6, i), step(simt, 6, i), 1e-2);
}

TEST(Gpu, ReplaysDoNotGrow) {
  NEED_GPU();
  PROGRAM(program, trainingProgram(tiny(), ir::DType::bf16, gpuTarget()));
  for (int64_t i = 0; i < 3; ++i) step(program, 8, i);
  auto context = llvm::cantFail(CudaContext::open(0));
  int64_t free = context->freeBytes();
  unsigned plans = program.plansBuilt();
  float last = 0;
  for (int64_t i = 0; i < 10000; ++i) last = step(program, 8, i % 50);
  EXPECT_EQ(context->freeBytes(), free);
  EXPECT_EQ(program.plansBuilt(), plans);
  EXPECT_LT(last, 1.0f); // it learned t = 5 x + 3 meanwhile
}

} // namespace
