// The question fusion asks: can these ops be one cluster, and of which kind?
#pragma once
#include "codegen/plan/loop.h"

namespace fusor::codegen {

/// The kind of cluster `cluster` can be on `target`, or the reason why it cannot be one.
llvm::Expected<ClusterKind> accept(const FlatCluster &cluster, const ir::Target &target);

/// Which outputs of a cluster may be written over which inputs: those of its loop, or of its GEMM's epilogue. None for
/// other anchors.
llvm::SmallVector<Overwrite, 4> overwritable(const FlatCluster &cluster);

} // namespace fusor::codegen
