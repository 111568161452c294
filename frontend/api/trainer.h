// Training a MiniGPT from settings: what `fusor train` and `fusor demo` do, without any printing.
#pragma once
#include "frontend/api/device.h"
#include "frontend/api/fp8_state.h"
#include "frontend/api/schedule.h"
#include "frontend/bench/step_profile.h"
#include "frontend/nn/modules.h"
#include "ir/types/dtype.h"
#include "passes/options.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <atomic>

namespace fusor::frontend {

/// Everything that changes the numbers of a run is in a checkpoint and comes back on --resume.
struct TrainSettings {
  nn::GptConfig config;
  std::string configName; // as the user called it, for a dump
  ir::DType precision = ir::DType::bf16;
  std::optional<passes::DelayedScaling> fp8; // of linear layers, in a run whose precision is bf16
  std::optional<int64_t> steps; // up to this step, resumed ones included; absent: all of the tokens file, else 60
  int64_t batch = 16;           // sequences a step
  int64_t accumulate = 1;       // micro-batches they are divided into
  bool recompute = true;        // cheap values again in the backward pass, where that saves memory
  double lr = 3e-4, weightDecay = 0.01;
  Schedule schedule = Schedule::constant;
  int64_t warmup = 0;
  std::string noDecay;
  std::optional<double> clipNorm;
  std::string data = "synthetic"; // or text:FILE
  double heldPercent = 0;
  uint64_t seed = 0;

  std::string tokensFile, initFile; // empty: none
  std::string saveFolder, resumeFolder;
  std::string fp8Trace;  // a file: the FP8 state after each step, a JSON line each
  bool fp8Stats = false; // count what FP8 clips and loses, in each step; the last one's numbers are in the summary
  int64_t saveEvery = 0; // 0: at the end only
  bool profile = false;  // at the end one more step, each launch by itself; nothing is kept of it
  DeviceSettings device;
};

/// "bf16", "fp8": what the precision of a run is called.
std::string precisionName(const TrainSettings &settings);
/// The settings that a checkpoint records, as its "config", "recipe" and "seed".
llvm::json::Object checkpointInfo(const TrainSettings &settings, int64_t step);
/// Sets them from a checkpoint.json. The error names the field.
llvm::Error fromCheckpointInfo(TrainSettings &settings, const llvm::json::Object &info);

struct StepReport {
  int64_t step = 0, steps = 0; // of how many
  double loss = 0, ms = 0;
  int64_t tokens = 0; // of this step
};
struct TrainEvents {
  llvm::function_ref<void(const StepReport &)> step = [](const StepReport &) {};
  llvm::function_ref<void(const llvm::Twine &)> note = [](const llvm::Twine &) {};
  llvm::function_ref<void(const llvm::Twine &)> warning = [](const llvm::Twine &) {};
  /// Looked at between steps: once true, the run saves where it is to save, and ends.
  const std::atomic<bool> *cancel = nullptr;
};

struct TrainSummary {
  int64_t firstStep = 1, lastStep = 0;
  std::optional<double> finalLoss, evalLoss;
  bool interrupted = false;
  std::string device, savedTo;
  double msPerStep = 0; // median
  double compileMs = 0, hostUsPerStep = 0;
  int64_t peakBytes = 0;
  unsigned launchesPerStep = 0, kernels = 0, compiled = 0, timedGemms = 0;
  std::map<std::string, int> gemms; // by operand dtype: {"bf16": 24, "f32": 3, "fp8": 0}
  std::vector<std::string> fallbacks;
  std::vector<Fp8State> fp8;             // of the first layer's tensors, after the last step
  std::vector<std::string> layersInBf16; // by fp8 select "auto"
  std::vector<Fp8Stats> fp8Stats;        // of the last step, its last micro-batch; where asked for
  std::optional<StepProfile> profile;
};

llvm::Expected<TrainSummary> train(const TrainSettings &settings, const TrainEvents &events);

} // namespace fusor::frontend
