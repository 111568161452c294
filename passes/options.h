// What the user decides about a compilation: one plain struct, filled by the command line or the API.
#pragma once
#include "ir/types/dim.h"
#include "ir/types/dtype.h"
#include "ir/types/target.h"
#include "llvm/ADT/StringSet.h"
#include <map>
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

enum class Fp8Format : uint8_t { hybrid, e4m3 }; // hybrid: gradients in E5M2, which reaches further
enum class AmaxAlgo : uint8_t { max, mostRecent };

/// FP8 linear layers whose scales follow the largest values of the steps before, as in Transformer Engine.
struct DelayedScaling {
  Fp8Format format = Fp8Format::hybrid;
  int64_t amaxHistory = 16;          // steps whose largest values are kept, 1 to 65536
  AmaxAlgo amaxAlgo = AmaxAlgo::max; // the scale follows the largest of the history, or the newest
  int64_t margin = 0;                // scales leave 2^margin of headroom, 0 to 30
  bool wgrad = true;                 // false: weight gradients from bf16 operands
  bool skipNonFinite = false;        // amaxes of Inf do not enter the history; in it they keep the scale for its length
  bool calibrate = false;            // before the first step scales are measured; else they are 1 in it
  /// "all"; a regular expression: layers with a match in their name, "blocks.3.fc1"; "auto": all but `inBf16`.
  std::string select = "all";
  /// Layers that stay in bf16, with the reason: what was measured for "auto" (frontend/api/fp8_select.h).
  std::optional<std::map<std::string, std::string>> inBf16 = {};

  // What @train_step is made for; no part of the recipe.
  bool returnAmax = false;  // it also returns each tensor's amax: results amax.NAME, for a trace
  bool returnStats = false; // and which part of it was clipped and which underflowed: clipped.NAME, underflow.NAME
  bool measureOnly = false; // amaxes are collected and scales follow, but all products stay in bf16
};

struct PassOptions {
  /// The function to differentiate. Empty: the only one, else @forward.
  std::string function;
  /// What contractions and activations are computed in: bf16, f16, or f32 (nothing changes).
  ir::DType precision = ir::DType::f32;
  /// A head (the linear layer before the loss or a result) with fewer outputs than this computes in f32.
  int64_t wideHeadBelow = 1024;
  /// FP8 GEMMs in linear layers. Needs precision bf16, which the rest of the model computes in.
  std::optional<DelayedScaling> fp8;
  /// Inference: the weights of linear layers, heads apart, are parameters in FP8.
  bool fp8Weights = false;
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
  /// The sizes at which decisions say how many bytes they save; any other symbol is in the middle of its range. Nothing
  /// is decided by them.
  ir::SymbolValues sizes;
  /// Prints the module after this pass, or after every pass where it is "all".
  std::string printAfter;
};

} // namespace fusor::passes
