// Where a step's time goes: --profile of train and bench.
#pragma once
#include "frontend/cli/console.h"
#include "runtime/execute/program.h"

namespace fusor::frontend::cli {

/// A row a kernel, the slowest first: launches, ms, share, GB/s (its values once), TFLOP/s where it has products; then
/// all of them, and how much of `stepMs`, a step without the profile, nothing ran. Under --json an object a row with
/// "kernel", and one with "profile_ms".
void showProfile(Console &console, llvm::ArrayRef<runtime::StepTime> steps, double stepMs);

} // namespace fusor::frontend::cli
