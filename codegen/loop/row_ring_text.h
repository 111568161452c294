// The text of rows that come through shared memory: this one and the next (codegen/device/row_ring.cuh).
//
//   const RowRing<bf16, 8, 3, 256> x_rows(rowMemory);      start: a ring for each full input, variables for row values
//   float mean_next = 0.0f;                                (mean, rstd), and the first row sets out
//   ...
//   for (row ...) {
//     const float mean2 = mean_next;                       load: the next row sets out, this one arrives
//     ... x_rows.fetch(stage ^ 1, j, x + next * 768 + c); waitForCopies<1>();
//     ... x_rows.read(stage, j, x8);                       read, in each sweep
//     stage ^= 1;
//
// Where memory is short (RowShape::lateInTheirRow), what the first sweep does not read sets out in its own row:
//
//     ... residual_rows.fetch(0, j, residual + row * 768 + c); commitCopies();
//     ... x_rows.fetch(stage ^ 1, j, x + next * 768 + c); waitForCopies<2>();
//     ... waitForCopies<1>(); residual_rows.read(0, j, residual8);
#pragma once
#include "codegen/loop/loop_text.h"
#include "codegen/loop/row_schedule.h"
#include "codegen/loop/row_shape.h"

namespace fusor::codegen {

class RowRingText {
public:
  /// `overColumns` writes the loop over a thread's columns around what it is given. All must outlive this.
  using OverColumns = std::function<void(llvm::function_ref<void()>)>;
  RowRingText(KernelBuilder &k, LoopText &text, const LoopPlan &plan, const RowShape &shape, OverColumns overColumns);

  /// In front of the loop over rows. `memory`: u8 * to bytes() of shared memory.
  void start(llvm::StringRef memory);
  int64_t bytes() const;
  void load();
  /// In front of a sweep that reads `needed`.
  void await(const RowSchedule::Values &needed);
  /// A full input, for the columns at hand: binds its elements.
  void read(const LoopStep &step);
  /// Whether the ring brings what `step` loads.
  bool brings(const LoopStep &step) const { return rings_.count(&step) || next_.count(&step); }

private:
  llvm::SmallVector<const LoopStep *, 4> rowLoads() const;
  void fetchNext(llvm::StringRef row, llvm::StringRef stage);
  void fetch(llvm::ArrayRef<const LoopStep *> loads, llvm::StringRef row, llvm::StringRef stage);
  bool isLate(const LoopStep &load) const { return llvm::is_contained(late_, &load); }
  int64_t bytesOf(const LoopStep &load) const;
  CodeWriter &w() { return text_.w(); }

  KernelBuilder &k_;
  LoopText &text_;
  const LoopPlan &plan_;
  const RowShape &shape_;
  OverColumns overColumns_;
  llvm::SmallVector<const LoopStep *, 8> early_, late_; // full inputs; the latter have one stage
  bool awaitsLate_ = false;                             // in this row, from the next sweep on that reads them
  llvm::DenseMap<const LoopStep *, std::string> rings_, next_;
};

} // namespace fusor::codegen
