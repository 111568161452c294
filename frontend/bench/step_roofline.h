// Each launch of a step beside the least time that this device could take for it.
#pragma once
#include "frontend/bench/roofline.h"
#include "runtime/execute/program.h"
#include <map>

namespace fusor::frontend {

/// What the device did best just now, by the type that products are computed in.
struct StepRoofline {
  double bytesPerMs = 0;                    // 0: not measured
  std::map<std::string, double> flopsPerMs; // "bf16", "f32", "fp8"
};

/// What is known of a launch: bytes and flops of its step, by the first launch of several.
struct LaunchFacts {
  std::optional<double> ms;
  std::optional<double> leastMs; // for its bytes and flops; none where the time or a peak was not measured
  double bytes = 0, flops = 0;
  std::optional<double> rooflinePercent() const {
    return leastMs ? std::optional<double>(100 * *leastMs / *ms) : std::nullopt;
  }
};

/// A copy, and a square GEMM of each precision that products of the step are computed in and that the device has.
llvm::Expected<StepRoofline> measureStepRoofline(const runtime::Description &description,
                                                 const DeviceSettings &settings, const ChosenDevice &device);
/// Of each launch of `description`, in order; `times` of each, or empty where none were measured.
std::vector<LaunchFacts> launchFacts(const runtime::Description &description, llvm::ArrayRef<runtime::StepTime> times,
                                     const StepRoofline &roofline);

} // namespace fusor::frontend
