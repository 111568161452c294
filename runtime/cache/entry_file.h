// The bytes of an entry's file: a header of 48 bytes, then the contents.
//   0  "FUSORCE1"   8  key (16 bytes)   24  length of the contents   32  their XXH3-128 (16 bytes); little endian
#pragma once
#include "runtime/cache/cache_key.h"

namespace fusor::runtime {

std::string entryHeader(const CacheKey &key, llvm::StringRef contents);

/// The contents within `file`, or nothing and the `problem`.
std::optional<llvm::StringRef> decodeEntry(llvm::StringRef file, const CacheKey &key, std::string &problem);

} // namespace fusor::runtime
