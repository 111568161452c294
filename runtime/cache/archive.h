// A whole cache in one file, to carry compiled kernels and GEMM plans to another machine: `fusor cache export F`,
// `import F`.
#pragma once
#include "runtime/cache/cache.h"

namespace fusor::runtime {

/// Writes all sound entries; says how many. Errors: FileError (write).
llvm::Expected<int64_t> exportCache(Cache &cache, llvm::StringRef path);

/// Puts every entry of the file; says how many. Checks the whole file before the first put. Errors: FileError (read, or
/// write into the cache), FileContentError.
llvm::Expected<int64_t> importCache(Cache &cache, llvm::StringRef path);

} // namespace fusor::runtime
