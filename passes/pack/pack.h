// The projections that one attention reads become one product.
//
//   const @wq, @wk, @wv : f32[768, 768]                  const @wq.wk.wv : f32[2304, 768]
//   const @bq, @bk, @bv : f32[768]                       const @bq.bk.bv : f32[2304]
//   %q = linear %x, @wq, @bq                             %qkv = linear %x, @wq.wk.wv, @bq.bk.bv
//   %k = linear %x, @wk, @bk                       =>    %q, %k, %v = split %qkv {sizes = [768, 768, 768]}
//   %v = linear %x, @wv, @bv                             %y, %lse = attention %q, %k, %v
//   %y, %lse = attention %q, %k, %v
//
// A step reads x once instead of three times, and a small batch fills the device with one product where three leave it
// half empty. The kernel of attention reads the parts in place. Weights are constants, as a model for inference has
// them: they are written anew, and the old ones go. Where another op reads a projection too, its copy would have to be
// cut out: it stays.
#pragma once
#include "passes/context.h"

namespace fusor::passes {

/// Every function. What attention reads and is left alone is recorded as refused under rule "pack", with the reason.
llvm::Expected<bool> packProjections(ir::Module &module, PassContext &context);

} // namespace fusor::passes
