#include "frontend/bench/step_profile.h"

namespace fusor::frontend {

llvm::Expected<StepProfile> profileStep(runtime::Program &program, llvm::StringRef function,
                                        llvm::ArrayRef<runtime::TensorView> inputs,
                                        llvm::ArrayRef<runtime::TensorView> outputs) {
  constexpr unsigned kRuns = 10, kBefore = 2; // the first profiled run makes the graph with its events
  StepProfile profile;
  auto together = program.timeRuns(function, inputs, program.isDeferred() ? kRuns : 1);
  if (!together) return together.takeError();
  profile.backToBackMs = *together;
  program.setProfiling(true);
  llvm::Error failed = llvm::Error::success();
  for (unsigned i = 0; i <= kBefore && !failed; ++i) failed = program.run(function, inputs, outputs);
  program.setProfiling(false);
  if (failed) return failed;
  profile.launches = program.stepTimes();
  return profile;
}

} // namespace fusor::frontend
