// The families of the op table, one file each, in the order `fusor ops` lists them.
#pragma once
#include "ir/ops/op_def.h"

namespace fusor::ir {

llvm::ArrayRef<OpDef> structureOps();     // return, yield, fusion, constant
llvm::ArrayRef<OpDef> elementwiseOps();   // arithmetic, comparisons, activations, cast
llvm::ArrayRef<OpDef> reductionOps();     // sum, mean, reduce_max, argmax
llvm::ArrayRef<OpDef> movementOps();      // reshape, transpose, slice, split, concat, pad, gather, iota
llvm::ArrayRef<OpDef> contractionOps();   // matmul, linear, weight_grad
llvm::ArrayRef<OpDef> normalizationOps(); // softmax, layer_norm, rms_norm and their gradients
llvm::ArrayRef<OpDef> attentionOps();     // attention, rope, cache_write
llvm::ArrayRef<OpDef> lossOps();          // embedding, cross_entropy and their gradients
llvm::ArrayRef<OpDef> quantizeOps();      // quantize, dequantize, amax_update, grad_quantize
llvm::ArrayRef<OpDef> randomOps();        // random_uniform, dropout
llvm::ArrayRef<OpDef> optimizerOps();     // global_norm, adamw

/// Ops a program adds to the table; see extra.cpp.
llvm::ArrayRef<OpDef> extraOps();

struct Family {
  const char *name;
  llvm::ArrayRef<OpDef> ops;
};
llvm::SmallVector<Family, 12> allFamilies();

} // namespace fusor::ir
