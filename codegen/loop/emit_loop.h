// Kernels of LoopPlans.
//
//   pointwise.cpp   no reductions: a flat loop over the elements, several neighbours a thread
//   row.cpp         reductions over columns: a warp or a block a row, values in registers where they fit
//   column.cpp      sums over rows only: a thread keeps its columns' sums over a chunk of rows; also, in tiles,
//                   what has a transposed result
//   finish.cpp      partial sums of chunks -> sums, and what follows from them: the second kernel of row and column
#pragma once
#include "codegen/loop/loop_text.h"

namespace fusor::codegen {

/// Where the value lies that a plan behind a GEMM starts from: an array of the domain, a workspace or a result that is
/// written already.
struct ProductPlace {
  unsigned index = 0; // of the workspace, or of the output
  ir::DType dtype = ir::DType::f32;
  bool isOutput = false;
};

/// Appends the kernels of `plan` to `set`.
llvm::Error emitLoop(const FusionBody &body, const LoopPlan &plan, const ir::Target &target, KernelSet &set,
                     std::optional<ProductPlace> product = std::nullopt);

/// Which outputs may overwrite which inputs: same place, same size, read by the thread that writes it, before.
void findInPlace(const FusionBody &body, const LoopPlan &plan, KernelSet &set);

/// What the kernel classes below share: the pointer of a product, sums and their workspaces.
struct LoopJob {
  const FusionBody &body;
  const LoopPlan &plan;
  KernelSet &set;
  ir::ArchTier tier = ir::ArchTier::simt;
  std::optional<ProductPlace> product = std::nullopt;
  unsigned firstPartials = 0; // workspace of sum 0
  void prepare(KernelBuilder &k, LoopText &text) const;
  /// Adds a workspace for each sum: [chunks, columns] or [chunks].
  void addPartials(const Count &chunks);
  std::string partials(KernelBuilder &k, unsigned sum, bool isConst) const;
};

void emitPointwise(LoopJob &job);
void emitRow(LoopJob &job);
void emitColumn(LoopJob &job);
/// How many partial results each sum has: those of columns, and those of scalars.
void emitFinish(LoopJob &job, const Count &columnParts, const Count &scalarParts);

} // namespace fusor::codegen
