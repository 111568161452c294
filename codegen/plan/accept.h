// The question fusion asks: can these ops be one cluster, and of which kind?
#pragma once
#include "codegen/plan/cluster.h"

namespace fusor::codegen {

/// The kind of cluster `cluster` can be on `target`, or the reason why it cannot be one.
llvm::Expected<ClusterKind> accept(const FlatCluster &cluster, const ir::Target &target);

} // namespace fusor::codegen
