// What a fusion is to a back end.
//
// Problem: the body of a `fusion` is ordinary IR with big ops (layer_norm, linear, cross_entropy). A kernel, or the
// CPU's blocked interpreter, wants to know: over which index space do I loop, where does each operand lie, what is
// computed per element, what per row, what is summed over rows. This folder answers that once for every back end, and
// fusion asks the same question before it merges two ops: a cluster is accepted when it has a plan, and the reason is
// kept when it has none.
//
//   flatten     body -> small ops: formulas, casts, sums, index maps, and at most one anchor (GEMM, attention, scatter)
//   LoopPlan    a loop over [rows, columns] with row reductions, column sums, and what follows from those sums
//   ...Plan     an anchor plus LoopPlans for what surrounds it
//
// Everything here is a pure function of IR and Target.
#pragma once
#include "ir/graph/graph.h"
#include "ir/ops/op_def.h"
#include "ir/types/target.h"

namespace fusor::codegen {

/// Which classes of kernels there are; the `kind` attribute of a fusion, and the folder that lowers it.
enum class ClusterKind : uint8_t {
  pointwise,   // LoopPlan without reductions
  row,         // LoopPlan with reductions over the last dim (perhaps also column sums)
  column,      // LoopPlan with sums over leading dims only
  contraction, // GEMM with an epilogue
  attention,   // attention or attention_grad
  scatter,     // scatter_add
  multiTensor, // adamw over many tensors, global_norm, amax_update
  movement,    // one movement op that nothing reads through: transpose, concat, pad, cache_write ...
};
llvm::StringRef name(ClusterKind kind); // "pointwise", "row", ..., "multi_tensor"
std::optional<ClusterKind> parseClusterKind(llvm::StringRef text);

/// A body in small ops. Its function has the fusion's inputs as arguments (same order, same types) and returns its
/// results.
struct FlatCluster {
  std::unique_ptr<ir::Module> module;
  ir::Function *function = nullptr;
  /// The anchor, or null. A GEMM anchor has an f32 (f64) result: bias and rounding are separate ops after it.
  ir::Op *anchor = nullptr;
};

/// Expands `fusion`'s body. Errors say which op has no small form, or that there are two anchors.
llvm::Expected<FlatCluster> flatten(const ir::Op &fusion);
/// The same for ops that are not yet in a fusion, in execution order: `inputs` and `outputs` are values at their
/// border.
llvm::Expected<FlatCluster> flatten(llvm::ArrayRef<ir::Op *> ops, llvm::ArrayRef<ir::Value> inputs,
                                    llvm::ArrayRef<ir::Value> outputs);

} // namespace fusor::codegen
