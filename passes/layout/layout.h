// layout: what stands between ops becomes something a kernel can read through.
//
//   %q, %k, %v = split %qkv                                %q, %k, %v = split %qkv            one split per reader, so
//   that each attention %q, %k, %v                          ->       attention %q, %k, %v               reader's kernel
//   can read the packed attention_grad %do, %q, %k, %v, ...                    %q1, %k1, %v1 = split %qkv tensor in
//   place
//                                                          attention_grad %do, %q1, %k1, %v1, ...
//
//   %s = sum %x {dims = [1]}   of [B, T, C]       ->       %t = transpose %x {perm = [0, 2, 1]},  %s = sum %t {dims =
//   [-1]}
//                                                          loops sum leading dims or the last one
//   %s = sum %x {dims = [1, 2]} of [B, H, W]      ->       %r = reshape %x : [B, H*W],  %s = sum %r {dims = [-1]}
#pragma once
#include "passes/context.h"

namespace fusor::passes {

llvm::Expected<bool> layout(ir::Module &module, PassContext &context);

} // namespace fusor::passes
