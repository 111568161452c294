// Kernel texts that a user put in place of generated ones (`fusor replay --install`), kept among the cache's entries.
#pragma once
#include "runtime/cache/cache.h"

namespace fusor::runtime {

/// The kind of their entries. `fusor cache clear` removes them like all others.
inline constexpr llvm::StringLiteral kEditedKernel = "edited-kernel";

/// Of the entry that stands for the generated text `original`, on every device.
CacheKey editedKernelKey(llvm::StringRef original);

} // namespace fusor::runtime
