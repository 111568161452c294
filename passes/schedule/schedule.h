// schedule: the order in which clusters run, so that fewer bytes are alive at once.
//
//   %du = fusion @dgelu(...)                               %du = fusion @dgelu(...)
//   %dx = fusion @dgrad(%du)                               %dw = fusion @wgrad(%du, %act)   the last use of %act: its
//   bytes
//   ...                                             ->     %dx = fusion @dgrad(%du)         are free for what follows
//   %dw = fusion @wgrad(%du, %act)                         ...
//
// Among the ops that are ready, the one that frees most (the operands it reads last, minus what it makes) runs first;
// equal ones keep their order. The new order is kept only where the planned arena gets smaller. Then a copy (a
// transpose, a wider cast) goes in front of its first reader: until then what it is made from may wait in its place,
// which is kept where the arena does not get larger. Arenas are planned with every symbol at the middle of its range.
// Values and kernels stay as they are.
#pragma once
#include "passes/context.h"

namespace fusor::passes {

llvm::Expected<bool> schedule(ir::Module &module, PassContext &context);

} // namespace fusor::passes
