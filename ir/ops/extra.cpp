// The family of ops that a program adds to the table: none here. A program that defines extraOps() itself gets its own
// family, because a linker takes a static library's file only for a symbol it still lacks. tests/extension does so to
// show that the whole compiler handles an op it has never heard of.
#include "ir/ops/families.h"

namespace fusor::ir {

llvm::ArrayRef<OpDef> extraOps() { return {}; }

} // namespace fusor::ir
