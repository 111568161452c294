// FP8 training runs of the frontend's tests: strict, on the CPU.
#pragma once
#include "frontend/api/trainer.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

namespace fusor::tests {

inline frontend::TrainSettings fp8Run(const char *config, int64_t steps) {
  frontend::TrainSettings s;
  s.config = *nn::configuration(config);
  s.fp8.emplace();
  s.device.device = "cpu", s.device.strict = true; // FP8 runs in kernels, not in the reference
  s.steps = steps, s.batch = 4, s.lr = 1e-3, s.seed = 5;
  return s;
}

struct Fp8Outcome {
  std::vector<double> losses;
  std::vector<std::string> notes;
  frontend::TrainSummary summary;
};
inline Fp8Outcome trainFp8(const frontend::TrainSettings &settings) {
  Fp8Outcome outcome;
  auto onStep = [&](const frontend::StepReport &r) { outcome.losses.push_back(r.loss); };
  auto onNote = [&](const llvm::Twine &note) { outcome.notes.push_back(note.str()); };
  auto summary = frontend::train(settings, {.step = onStep, .note = onNote});
  if (!summary)
    ADD_FAILURE() << llvm::toString(summary.takeError());
  else
    outcome.summary = *summary;
  return outcome;
}

} // namespace fusor::tests
