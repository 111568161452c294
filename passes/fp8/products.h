// What `fusor explain MODEL --precision fp8 --rule gemm` lists: each product with its role, sizes and types, and why
// one is not in FP8.
//
//   taken     gemm: forward, 32*B x 192 x 64, f8e4m3 x f8e4m3, fast accumulation
//   refused   gemm: weight gradient, 96 x 64 x 32*B, f32: computes in f32, FP8 takes the place of bf16
#pragma once
#include "passes/context.h"

namespace fusor::passes {

/// "forward", "input gradient", "weight gradient" of a linear layer, in the form that gradient rules write and in that
/// of fp8-tn; "activations" of any other product.
llvm::StringRef roleOf(const ir::Op &product);

/// Records one decision a product, of all functions, while gradients have their own ops: before fp8-tn.
void recordProducts(const ir::Module &module, PassContext &context);

} // namespace fusor::passes
