// Where a step's time goes: --profile of train and bench.
#pragma once
#include "frontend/bench/step_profile.h"
#include "frontend/cli/console.h"

namespace fusor::frontend::cli {

/// A row a kernel, the slowest first: launches, ms, share, GB/s (its values once), TFLOP/s where it has products, % of
/// the roofline that the device has just now; then their sum, what they take back to back, and how much of `stepMs`, a
/// step as the run had them, the device was idle: the difference to that. Under --json an object a row with "kernel",
/// and one with "profile_ms".
void showProfile(Console &console, const StepProfile &profile, double stepMs);

} // namespace fusor::frontend::cli
