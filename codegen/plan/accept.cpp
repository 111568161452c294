#include "codegen/plan/accept.h"
#include "codegen/plan/anchors.h"

namespace fusor::codegen {

using namespace ir;

namespace {

// A library's FP8 product is in memory, and a loop behind it may add up all of it (an amax) or transpose it. In a
// kernel that has the product in registers that would send it through memory.
llvm::Expected<ClusterKind> acceptContraction(const FlatCluster &cluster, const Target &target) {
  auto plan = planContraction(cluster);
  if (!plan) return plan.takeError();
  bool inMemory = target.hasFp8Library() && isFp8(plan->a.dtype) && isFp8(plan->b.dtype);
  for (const RowsSum &sum : plan->epilogue.sums)
    if (sum.span != Span::column && !inMemory) return opError("a sum over a whole GEMM result is a kernel of its own");
  if (plan->epilogue.hasTransposedStore() && !inMemory)
    return opError("the transpose of a GEMM result is a kernel of its own");
  return ClusterKind::contraction;
}

// Devices without tensor cores have 64 KB of shared memory: less is left for rows that are transposed.
llvm::Expected<ClusterKind> acceptLoop(const FlatCluster &cluster, const Target &target) {
  auto plan = planLoop(cluster);
  if (!plan) return plan.takeError();
  bool isSmall = target.kind == DeviceKind::cuda && target.tier == ArchTier::simt;
  auto transposed = llvm::count_if(plan->stores, [](const LoopStore &store) { return store.isTransposed; });
  if (isSmall && plan->hasRowReduction() && transposed &&
      4 * transposed * plan->columns.value() > kMostTransposedRowColumns)
    return opError("rows of {0} columns are too long to be transposed on this device", plan->columns.str());
  return plan->kind();
}

} // namespace

llvm::SmallVector<Overwrite, 4> overwritable(const FlatCluster &cluster) {
  const Block &body = cluster.function->block();
  if (!cluster.anchor) {
    auto plan = planLoop(cluster);
    if (!plan) return llvm::consumeError(plan.takeError()), llvm::SmallVector<Overwrite, 4>();
    return overwritable(*plan, body);
  }
  if (cluster.anchor->def().lowering != Lowering::contraction) return {};
  auto plan = planContraction(cluster);
  if (!plan) return llvm::consumeError(plan.takeError()), llvm::SmallVector<Overwrite, 4>();
  auto pairs = overwritable(plan->epilogue, body);
  llvm::erase_if(pairs,
                 [&](const Overwrite &pair) { return pair.input == plan->a.input || pair.input == plan->b.input; });
  return pairs;
}

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
  auto loop = acceptLoop(cluster, target);
  if (loop) return *loop;
  if (auto movement = planMovement(cluster)) {
    llvm::consumeError(loop.takeError());
    return ClusterKind::movement;
  } else {
    llvm::consumeError(movement.takeError());
  }
  return loop.takeError();
}

} // namespace fusor::codegen
