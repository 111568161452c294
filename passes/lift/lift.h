// Small ops, as other tools export them, become the big ops of the table, which kernels are made for.
//
//   %m = mean %x {dims = [2], keep = true}
//   %d = sub %x, %m
//   %s = mul %d, %d                                  %y, %mean, %rstd = layer_norm %x, weight = @w, bias = @b
//   %v = mean %s {dims = [2], keep = true}                                        {eps = 1e-12}
//   %e = add %v, 1e-12                         =>
//   %r = sqrt %e
//   %n = div %d, %r
//   %a = mul %n, @w
//   %y = add %a, @b
//
// One file a family (family.h lists them); each finds a form by its meaning, not by one spelling. A value that
// something else reads too stays. A form is lifted where the big op computes the same in exact arithmetic and rounds no
// less finely: f32 and f64 alone, casts in and out included; small ops in f16 round in between and stay.
#pragma once
#include "passes/context.h"

namespace fusor::passes {

/// Every function, until no family finds anything. Rules are called "lift-FAMILY"; they, and "lift" for all, can be
/// disabled. With options.explain forms that are left are recorded as near misses, with the condition that failed and
/// the bytes between the form's inputs and its result, as if each small op were a kernel.
llvm::Expected<bool> lift(ir::Module &module, PassContext &context);

} // namespace fusor::passes
