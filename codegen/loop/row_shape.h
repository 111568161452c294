// Who works on what in a row kernel: chosen from the plan's fixed dims and the tier, never from a device or a batch.
//
//   a warp a row      up to 1024 columns, where few enough elements meet in a thread
//   a block a row     wider, or columns that are a symbol
//   sums over rows    a block goes through a chunk of rows; with sums of columns the next row comes through shared
//                     memory while this one is worked on
//   transposed results  a block goes through tiles of rows, and stores the columns of each; blocks take turns, so that
//                     neighbours in memory are written at about the same time
#pragma once
#include "codegen/emit/count.h"
#include "codegen/plan/loop.h"
#include "ir/types/target.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace fusor::codegen {

struct RowShape {
  bool isPersistent = false;        // a row stays in registers (or in shared memory); else each sweep reads it again
  bool isWarp = false;              // a warp a row
  bool isRagged = false;            // the last turn has columns for some of the threads only
  bool usesRing = false;            // this row and the next one are in shared memory
  bool lateInTheirRow = false;      // of the next one only what its first sweep reads
  int64_t threads = 32;             // of the unit that has a row
  int64_t warps = 4;                // of a block, where a warp has a row
  int64_t turns = 1;                // vectors of a thread in a row
  std::optional<int64_t> chunkRows; // without sums of columns
  Count chunks = 1;                 // of rows, with sums or transposed results
  int64_t tileRows = 0;             // with transposed results
  unsigned blocksTogether = 0;      // on one multiprocessor at least
  int64_t blockThreads() const { return isWarp ? 32 * warps : threads; }
};

/// Loads of one element a column and row.
llvm::SmallVector<const LoopStep *, 8> fullLoads(const LoopPlan &plan);
/// Those of them that the first sweep does not read.
llvm::SmallVector<const LoopStep *, 8> lateLoads(const LoopPlan &plan);
int64_t columnSums(const LoopPlan &plan);

/// `width`: columns of a thread at a time. `isVector`: whether an access is one of `width` aligned neighbours.
RowShape rowShape(const LoopPlan &plan, int width, ir::ArchTier tier,
                  llvm::function_ref<bool(const Access &)> isVector);

} // namespace fusor::codegen
