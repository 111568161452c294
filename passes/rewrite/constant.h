// Constants that passes write anew: weights transposed, joined, in another dtype.
#pragma once
#include "ir/graph/graph.h"

namespace fusor::passes {

/// The constant that `value` reads from the module, with its bytes; else null.
const ir::Persistent *storedConstant(ir::Value value);
/// The name of a constant of `type` and content: `name`, or `name`.N where that is another's. One that is there already
/// is not kept twice.
std::string writeConstant(ir::Module &module, llvm::StringRef name, const ir::TensorType &type, std::vector<char> bytes,
                          const ir::Location &location);
/// Whether an op other than `except` reads the persistent value, or another derives from it.
bool isRead(const ir::Module &module, llvm::StringRef name, const ir::Op *except = nullptr);
/// Removes what nothing reads any more: a model's weights would be kept twice.
void eraseUnread(ir::Module &module, const std::string &name);

} // namespace fusor::passes
