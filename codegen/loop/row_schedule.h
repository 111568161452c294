// When a row kernel can compute what: sweeps over the columns, with reductions between them.
//
//   layer_norm:  sweep 0   sum x                   row values   mean = sum / C
//                sweep 1   sum (x - mean)^2        row values   rstd = ...
//                sweep 2   (x - mean) * rstd, store
//
// A value's level is the number of the first sweep that can compute it. A persistent kernel has every full input in
// registers from the start, keeps what is expensive (exp), and computes again what is cheap (x - mean). Otherwise each
// sweep loads and computes again whatever it needs; there, a maximum and the sum of exp(x - maximum) take one sweep:
// the sum is moved to the scale of each larger x (exp_sum.cuh).
#pragma once
#include "codegen/plan/loop.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace fusor::codegen {

/// One value a column: the steps that belong into the loop over columns.
inline bool variesOverColumns(Span span) { return span == Span::full || span == Span::column; }

class RowSchedule {
public:
  using Values = llvm::SmallPtrSet<const ir::ValueDef *, 16>;

  /// `plan` must outlive it. `loadsInSweeps`: full inputs are not in registers from the start; each sweep of a
  /// persistent kernel reads what it needs of them.
  RowSchedule(const LoopPlan &plan, bool isPersistent, bool loadsInSweeps);

  unsigned lastSweep() const { return last_; }
  unsigned level(ir::Value v) const { return level_.lookup(v.def()); }
  const LoopStep &step(ir::Value v) const { return *steps_.lookup(v.def()); }
  /// The value that a reduction takes in, sweep by sweep: its operand, or x of a sum of exp(x - maximum).
  ir::Value reduced(const LoopStep &reduction) const;
  /// For the maximum of x, the step that sums exp(x - maximum) beside it; else null.
  const LoopStep *expSumBeside(const LoopStep &maximum) const { return besideMaximum_.lookup(&maximum); }
  bool isExpSum(const LoopStep &reduction) const { return maximumOf_.count(&reduction); }
  /// Computed in sweep level(v) into an array that later sweeps read.
  bool isKept(ir::Value v) const { return kept_.contains(v.def()); }
  /// The sweep that stores `v`, or adds it to sums over rows. Kernels that load again do so at the end only: an output
  /// may be the buffer of an input.
  unsigned outputSweep(ir::Value v) const { return isPersistent_ ? level(v) : last_; }
  /// What sweep `at` is for: operands of reductions, stores, sums over rows, kept values. Empty: there is no such
  /// sweep.
  llvm::SmallVector<ir::Value, 16> wantedBy(unsigned at) const;
  /// The loads and computations of sweep `at`.
  Values neededBy(unsigned at) const;

private:
  void findExpSum(const LoopStep &sum);
  void collect(ir::Value v, unsigned at, Values &steps, Values *kept) const;

  const LoopPlan &plan_;
  bool isPersistent_, loadsInSweeps_;
  unsigned last_ = 0;
  llvm::DenseMap<const ir::ValueDef *, unsigned> level_;
  llvm::DenseMap<const ir::ValueDef *, const LoopStep *> steps_;
  Values kept_;
  llvm::DenseMap<const LoopStep *, const LoopStep *> maximumOf_, besideMaximum_; // sum of exp -> maximum, and back
};

} // namespace fusor::codegen
