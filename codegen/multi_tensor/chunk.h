// How kernels over many tensors begin: which chunk, or tile, of which tensor a block has.
#pragma once
#include "codegen/emit/kernel_builder.h"
#include "codegen/plan/anchors.h"

namespace fusor::codegen {

constexpr int64_t kChunk = 4096;
constexpr int kThreads = 256, kWidth = 4, kSide = 64;

/// `table`, of all tensors.
void openTable(KernelBuilder &k);
/// `table`, and this block's `chunk`; pointers follow.
void openChunk(KernelBuilder &k, int64_t elements = kChunk);
/// The same of matrices in tiles of kSide x kSide.
void openTile(KernelBuilder &k);
/// The loop over a chunk, kWidth elements a thread: `i` is the first, `left` are there.
CodeWriter::Block overChunk(KernelBuilder &k);

/// adamw and what follows from the new parameters; see update.cpp.
llvm::Error emitUpdate(const FusionBody &body, KernelSet &set, const MultiTensorPlan &plan, int64_t chunks);

} // namespace fusor::codegen
