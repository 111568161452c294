#include "codegen/plan/accept.h"
#include "codegen/plan/anchors.h"

namespace fusor::codegen {

using namespace ir;

namespace {

// A library's FP8 product is in memory, and a loop behind it may add up all of it (an amax). In a kernel that has the
// product in registers that sum would send it through memory.
llvm::Expected<ClusterKind> acceptContraction(const FlatCluster &cluster, const Target &target) {
  auto plan = planContraction(cluster);
  if (!plan) return plan.takeError();
  bool inMemory = target.hasCublasLt && target.hasFp8 && isFp8(plan->a.dtype) && isFp8(plan->b.dtype);
  for (const RowsSum &sum : plan->epilogue.sums)
    if (sum.span != Span::column && !inMemory) return opError("a sum over a whole GEMM result is a kernel of its own");
  return ClusterKind::contraction;
}

} // namespace

llvm::Expected<ClusterKind> accept(const FlatCluster &cluster, const Target &target) {
  auto planned = [](auto plan, ClusterKind kind) -> llvm::Expected<ClusterKind> {
    if (!plan) return plan.takeError();
    return kind;
  };
  if (cluster.anchor) {
    switch (cluster.anchor->def().lowering) {
    case Lowering::contraction: return acceptContraction(cluster, target);
    case Lowering::attention: return planned(planAttention(cluster), ClusterKind::attention);
    case Lowering::scatter: return planned(planScatter(cluster), ClusterKind::scatter);
    default: return opError("{0} is a kernel of its own", cluster.anchor->name());
    }
  }
  auto loop = planLoop(cluster);
  if (loop) return loop->kind();
  if (auto movement = planMovement(cluster)) {
    llvm::consumeError(loop.takeError());
    return ClusterKind::movement;
  } else {
    llvm::consumeError(movement.takeError());
  }
  return loop.takeError();
}

} // namespace fusor::codegen
