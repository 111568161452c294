// Where a step's time goes.
#pragma once
#include "frontend/bench/step_roofline.h"

namespace fusor::frontend {

struct StepProfile {
  /// The time of each launch, the median of some steps. On a GPU a step is a graph, and an event between two of its
  /// launches makes the device wait: what the events cost together is measured, and each launch is given its share
  /// less.
  std::vector<runtime::StepTime> launches;
  double eventUs = 0; // that share
  /// A step where as many as are measured stand one behind the other on the device: what its launches take together.
  double backToBackMs = 0;
  StepRoofline roofline;
  std::vector<LaunchFacts> facts; // of each launch
  /// What the launches take, one by one.
  double launchesMs() const;
};

/// Runs `function` some times more: states go on. Then what the device does best is measured.
llvm::Expected<StepProfile> profileStep(runtime::Program &program, const DeviceSettings &settings,
                                        const ChosenDevice &device, llvm::StringRef function,
                                        llvm::ArrayRef<runtime::TensorView> inputs,
                                        llvm::ArrayRef<runtime::TensorView> outputs);

} // namespace fusor::frontend
