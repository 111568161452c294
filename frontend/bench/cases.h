// The kernels that `fusor bench norm|gemm|attention|quantize` times, with the shapes of the contract's configurations.
// To add one: a KernelCase in its .cpp, its row appears by itself.
#pragma once
#include "frontend/bench/kernel_case.h"
#include "llvm/ADT/ArrayRef.h"

namespace fusor::frontend::bench {

struct RowShape {
  int64_t rows = 0, columns = 0;
};
struct GemmDims {
  std::string name; // "seed qkv"
  int64_t m = 0, n = 0, k = 0;
};
struct AttentionDims {
  int64_t batch = 0, heads = 0, kvHeads = 0, sequence = 0, headSize = 0, window = 0; // kvHeads 0: as many as heads
  bool causal = true;
};

/// layer_norm, GELU with bias, cross entropy, forward and backward, and AdamW. `shapes` empty: those of a GPU's
/// table, cross entropy over `vocab`. A shape that is given is used for all but AdamW, which gets as many elements.
std::vector<KernelCase> normCases(ir::DType precision, llvm::ArrayRef<RowShape> shapes);
/// A linear layer's product and its two gradients, by cuBLASLt and by generated kernels where `device` has both; in FP8
/// (f8e4m3) the forward product alone, scaled and in bf16 in the end, by whatever takes it.
std::vector<KernelCase> gemmCases(ir::DType precision, llvm::ArrayRef<GemmDims> shapes, const ChosenDevice &device,
                                  bool gradients);
std::vector<KernelCase> attentionCases(ir::DType precision, llvm::ArrayRef<AttentionDims> shapes);
std::vector<KernelCase> quantizeCases(RowShape shape);

/// What a GPU's table has.
std::vector<GemmDims> modelGemms();
std::vector<AttentionDims> modelAttentions();

} // namespace fusor::frontend::bench
