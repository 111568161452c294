// Where a step's time goes.
#pragma once
#include "runtime/execute/program.h"

namespace fusor::frontend {

struct StepProfile {
  /// Each launch by itself, between events: a microsecond or so of each is the event's.
  std::vector<runtime::StepTime> launches;
  /// A step where as many as are measured stand one behind the other on the device: what its launches take together.
  double backToBackMs = 0;
};

/// Runs `function` a few times more: states go on.
llvm::Expected<StepProfile> profileStep(runtime::Program &program, llvm::StringRef function,
                                        llvm::ArrayRef<runtime::TensorView> inputs,
                                        llvm::ArrayRef<runtime::TensorView> outputs);

} // namespace fusor::frontend
