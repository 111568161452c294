// What train and demo share: a training run with its progress, step lines and summary.
#pragma once
#include "frontend/api/trainer.h"
#include "frontend/cli/console.h"

namespace fusor::frontend::cli {

/// Runs it, says each step (a line, or progress on a terminal) and the summary. A finished or interrupted run gives its
/// summary.
llvm::Expected<TrainSummary> trainAndReport(Console &console, const TrainSettings &settings);

/// A number for JSON: null where it is not finite.
llvm::json::Value jsonNumber(double value);

} // namespace fusor::frontend::cli
