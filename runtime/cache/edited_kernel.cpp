#include "runtime/cache/edited_kernel.h"

namespace fusor::runtime {

CacheKey editedKernelKey(llvm::StringRef original) { return CacheKeyBuilder().add("original", original).key(); }

} // namespace fusor::runtime
