// Two programs, as a shared object that Python opens after PyTorch: beside_torch.py.
#include "tests/gpu/support.h"
#include <cstdio>

using namespace fusor;

namespace {

llvm::Error train(llvm::MutableArrayRef<double> losses) {
  nn::GptConfig config = *nn::configuration("tiny");
  auto first = tests::trainingProgram(config, ir::DType::bf16, tests::gpuTarget());
  if (!first) return first.takeError();
  auto second = tests::trainingProgram(config, ir::DType::f32, tests::gpuTarget());
  if (!second) return second.takeError();
  for (size_t i = 0; i < losses.size(); ++i) {
    auto loss = tests::trainStep(i % 2 ? **second : **first, config, 4, static_cast<int64_t>(i / 2));
    if (!loss) return loss.takeError();
    losses[i] = *loss;
  }
  return llvm::Error::success();
}

} // namespace

/// Trains two programs in turn, from the same start at each call: `count` losses, or 1 and the reason on stderr.
extern "C" __attribute__((visibility("default"))) int fusorTrainTwoPrograms(double *losses, int count) {
  if (std::string why = tests::whyNoGpu(); !why.empty()) {
    std::fprintf(stderr, "%s\n", why.c_str());
    return 1;
  }
  llvm::Error error = train({losses, static_cast<size_t>(count)});
  if (!error) return 0;
  std::fprintf(stderr, "%s\n", llvm::toString(std::move(error)).c_str());
  return 1;
}
