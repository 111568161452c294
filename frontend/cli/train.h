// What train and demo share: a training run with its progress, step lines and summary.
#pragma once
#include "frontend/api/trainer.h"
#include "frontend/cli/console.h"

namespace fusor::frontend::cli {

/// The losses of a run, and those of a bf16 run on the same data that are shown beside them.
struct Losses {
  std::vector<double> own = {};
  llvm::ArrayRef<double> bf16 = {};
};
/// Runs it, says each step (a line, or progress on a terminal) and the summary. A finished or interrupted run gives its
/// summary.
llvm::Expected<TrainSummary> trainAndReport(Console &console, const TrainSettings &settings, Losses *losses = nullptr);

/// A number for JSON: null where it is not finite.
llvm::json::Value jsonNumber(double value);

} // namespace fusor::frontend::cli
