// What the user decides about a compilation: one plain struct, filled by the command line or the API.
#pragma once
#include "ir/types/dtype.h"
#include "ir/types/target.h"
#include "llvm/ADT/StringSet.h"
#include <optional>
#include <string>

namespace fusor::passes {

/// AdamW as in PyTorch: decoupled weight decay, bias-corrected moments in f32.
struct AdamW {
  double lr = 3e-4; // the initial content of state @optimizer.lr; the host may set that before any step
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weightDecay = 0.01;
  std::string noDecay;            // regular expression; parameters with a match in their name do not decay
  std::optional<double> clipNorm; // the largest L2 norm of all gradients together
};

struct PassOptions {
  /// The function to differentiate. Empty: the only one, else @forward.
  std::string function;
  /// What contractions and activations are computed in: bf16, f16, or f32 (nothing changes).
  ir::DType precision = ir::DType::f32;
  /// A head (the linear layer before the loss or a result) with fewer outputs than this computes in f32.
  int64_t wideHeadBelow = 1024;
  AdamW optimizer;
  /// The initial dynamic loss scale. Absent: 65536 for f16, none for other precisions.
  std::optional<double> lossScale;
  /// Micro-batches a step: @accumulate runs on all but the last, @train_step on the last. 1: no accumulation.
  int64_t accumulate = 1;

  /// Cheap values that would wait for the backward pass are computed again there. Bits do not change.
  bool recompute = true;

  ir::Target target;
  /// Rules and fusions that never fire, by name.
  llvm::StringSet<> disabledRules;
  /// Only the first N rewrites of rules and fusions happen: bisecting N finds the one that breaks a module.
  std::optional<int64_t> fuel;
  /// Records near misses of rules for `fusor explain`: costs time.
  bool explain = false;
  /// Prints the module after this pass, or after every pass where it is "all".
  std::string printAfter;
};

} // namespace fusor::passes
