// Dynamic loss scaling: gradients of f16 activations would underflow, so the backward function starts from a scale S
// instead of 1, and the optimizer divides by it.
//
//   every gradient finite:  the step happens; after 2000 such steps in a row S doubles
//   an Inf or a NaN:        nothing changes but S, which halves (not below 1)
//
// as torch.amp.GradScaler does, but inside the graph: the host never looks. The states are optimizer.loss_scale (f32[])
// and optimizer.good_steps (i32[]).
#pragma once
#include "ir/graph/builder.h"
#include "passes/options.h"

namespace fusor::passes {

bool scalesLoss(const PassOptions &options);
/// S as `function` reads it.
ir::Value lossScale(ir::Function &function, const PassOptions &options);
/// From the norm of all scaled gradients: whether the step happens (i1[]). Adds the new S and count to `entries`.
ir::Value adaptLossScale(ir::Function &function, ir::Builder &b, ir::Value norm, const PassOptions &options,
                         llvm::SmallVectorImpl<ir::ReturnEntry> &entries);

} // namespace fusor::passes
