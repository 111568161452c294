// Copies of parameters in other dtypes become persistent: made once, kept up to date by whoever writes the parameter.
//
//   param @w : f32[8, 6]                                param @w : f32[8, 6]
//   func @train_step(%x) {                              derived @w.bf16 : bf16[8, 6] = cast @w {to = bf16}
//     %w.bf16 = cast @w {to = bf16}                =>   func @train_step(%x) {
//     %y = linear %x, %w.bf16                             %y = linear %x, @w.bf16
//     ...                                                 ...
//     return %loss, @w = %new.w                           %new.w.bf16 = cast %new.w {to = bf16}
//   }                                                     return %loss, @w = %new.w, @w.bf16 = %new.w.bf16
//
// Likewise `%q, %a = quantize @w, @w.scale` becomes @w.fp8 = quantize(@w, @w.scale) and @w.amax = amax(@w). A step
// writes
// @w.fp8 from the new weight and the new scale, which follows from the amax of the old one: the amax of the new weight
// belongs to the next step.
//
// A cast of a constant is a constant, which takes the place of the other: models from ONNX files have their weights so.
#pragma once
#include "passes/context.h"

namespace fusor::passes {

/// The name of the derived value that equals `op @sources... attrs`, of `type`; declared, as `name` or `name`.N, where
/// there is none yet.
std::string derivedValue(ir::Module &module, llvm::StringRef op, llvm::ArrayRef<std::string> sources, ir::Attrs attrs,
                         const ir::TensorType &type, const llvm::Twine &name);

/// A function that writes a persistent value writes its casts, quantised copies and transposes too, from the new values
/// of all that they derive from.
bool writeCopies(ir::Module &module, ir::Function &function);

/// Every function. A cast or quantize of anything but a param or a constant stays.
llvm::Expected<bool> derive(ir::Module &module, PassContext &context);

} // namespace fusor::passes
