#include "frontend/bench/step_profile.h"
#include "frontend/bench/median.h"
#include <algorithm>

namespace fusor::frontend {
namespace {

// The median time of each launch over `runs` steps.
llvm::Expected<std::vector<runtime::StepTime>> timeLaunches(runtime::Program &program, llvm::StringRef function,
                                                            llvm::ArrayRef<runtime::TensorView> inputs,
                                                            llvm::ArrayRef<runtime::TensorView> outputs,
                                                            unsigned runs) {
  const unsigned before = program.isDeferred() ? 2 : 0; // the first profiled run makes the graph with its events
  std::vector<runtime::StepTime> launches;
  std::vector<std::vector<double>> ms;
  for (unsigned i = 0; i < before + runs; ++i) {
    if (auto error = program.run(function, inputs, outputs)) return error;
    if (i < before) continue;
    launches = program.stepTimes();
    ms.resize(launches.size());
    for (size_t l = 0; l < launches.size(); ++l) ms[l].push_back(launches[l].ms);
  }
  for (size_t l = 0; l < launches.size(); ++l) launches[l].ms = medianOf(ms[l]);
  return launches;
}

} // namespace

double StepProfile::launchesMs() const {
  double total = 0;
  for (const runtime::StepTime &launch : launches) total += launch.ms;
  return total;
}

llvm::Expected<StepProfile> profileStep(runtime::Program &program, const DeviceSettings &settings,
                                        const ChosenDevice &device, llvm::StringRef function,
                                        llvm::ArrayRef<runtime::TensorView> inputs,
                                        llvm::ArrayRef<runtime::TensorView> outputs) {
  constexpr double kRuns = 10, kMostMs = 1000; // a CPU's step can take seconds
  StepProfile profile;
  auto runs = static_cast<unsigned>(kRuns);
  if (!program.isDeferred()) {
    auto once = program.timeRuns(function, inputs, 1);
    if (!once) return once.takeError();
    profile.backToBackMs = *once;
    runs = static_cast<unsigned>(std::clamp(kMostMs / *once, 1.0, kRuns));
  }
  if (program.isDeferred() || runs > 1) {
    auto together = program.timeRuns(function, inputs, runs);
    if (!together) return together.takeError();
    profile.backToBackMs = *together;
  }
  program.setProfiling(true);
  auto launches = timeLaunches(program, function, inputs, outputs, runs);
  program.setProfiling(false);
  if (!launches) return launches.takeError();
  profile.launches = std::move(*launches);
  if (program.isDeferred() && !profile.launches.empty()) {
    double each = std::max(0.0, profile.launchesMs() - profile.backToBackMs) / profile.launches.size();
    profile.eventUs = 1e3 * each;
    for (runtime::StepTime &launch : profile.launches) launch.ms = std::max(0.0, launch.ms - each);
  }
  auto symbols = program.bindSymbols(function, inputs);
  if (!symbols) return symbols.takeError();
  auto description = program.describe(function, *symbols);
  if (!description) return description.takeError();
  auto roofline = measureStepRoofline(*description, settings, device);
  if (!roofline) return roofline.takeError();
  profile.roofline = std::move(*roofline);
  profile.facts = launchFacts(*description, profile.launches, profile.roofline);
  return profile;
}

} // namespace fusor::frontend
