// Movement that nothing reads through: transposes, slices, concat, pad, the KV cache. Strided copies, and tiles of a
// transposed matrix.
#pragma once
#include "codegen/emit/kernel_builder.h"

namespace fusor::codegen {

/// Whether the cluster is one transpose of matrices of 1, 2 or 4 bytes an element, which tiles in shared memory move
/// faster than a loop that reads through it.
bool isTiledTranspose(const FusionBody &body);

/// At most three kernels: fill, start from a copy of an input, copy. Errors: the plan's.
llvm::Error emitMovement(const FusionBody &body, KernelSet &set);

} // namespace fusor::codegen
