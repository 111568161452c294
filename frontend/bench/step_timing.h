// A whole training step, or a forward pass, as a training loop sees it: step after step, results read one step late.
#pragma once
#include "frontend/api/device.h"
#include "frontend/bench/step_profile.h"
#include "frontend/dump/dump_folder.h"
#include "ir/graph/graph.h"

namespace fusor::frontend::bench {

struct StepCase {
  std::unique_ptr<ir::Module> module;
  bool isTraining = true; // @train_step, else @forward
  ir::DType precision = ir::DType::bf16;
  bool fp8 = false; // linear layers in FP8
  ir::SymbolValues symbols = {};
  int64_t vocab = 2;                // tokens and targets are the synthetic data's
  std::string config;               // its name
  const DumpFolder *dump = nullptr; // where the run is described; null: nowhere
};

struct StepTiming {
  double ms = 0, minMs = 0, maxMs = 0; // from the end of one step to the end of the next: median, least, most
  double hostUs = 0;                   // the host's part of a step on a GPU, median; waiting is none
  double compileMs = 0;
  double flops = 0, bytes = 0; // of GEMMs and attentions; read and written once by each kernel
  int64_t peakBytes = 0;
  unsigned launches = 0, kernels = 0, compiled = 0;
  std::vector<std::string> notes, fallbacks;
  std::optional<StepProfile> profile; // where asked for
};

llvm::Expected<StepTiming> timeSteps(StepCase step, const DeviceSettings &settings, const ChosenDevice &device,
                                     uint64_t seed, int64_t warmup, int64_t iterations, bool profile);

} // namespace fusor::frontend::bench
