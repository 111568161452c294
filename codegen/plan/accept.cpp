#include "codegen/plan/accept.h"
#include "codegen/plan/anchors.h"

namespace fusor::codegen {

using namespace ir;

llvm::Expected<ClusterKind> accept(const FlatCluster &cluster, const Target &target) {
  auto planned = [](auto plan, ClusterKind kind) -> llvm::Expected<ClusterKind> {
    if (!plan) return plan.takeError();
    return kind;
  };
  if (cluster.anchor) {
    switch (cluster.anchor->def().lowering) {
    case Lowering::contraction: return planned(planContraction(cluster), ClusterKind::contraction);
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
