// The address of a cache entry: a 128-bit hash of everything that decides its contents.
#pragma once
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace fusor::runtime {

/// Equal inputs, equal keys, on any machine.
struct CacheKey {
  uint64_t high = 0, low = 0;

  std::string str() const; ///< 32 hex digits
  static std::optional<CacheKey> parse(llvm::StringRef text);
  bool operator==(const CacheKey &) const = default;
};

/// XXH3-128 of the bytes. Guards against accidents, not against an attacker who can write into the cache.
CacheKey hashBytes(llvm::StringRef bytes);

/// Collects the parts of a key; their names and order count.
///   CacheKey key = CacheKeyBuilder().add("source", text).add("arch", "sm_90a").add("nvrtc", "13.0").key();
class CacheKeyBuilder {
public:
  CacheKeyBuilder &add(llvm::StringRef name, llvm::StringRef value);
  CacheKey key() const { return hashBytes(text); }

private:
  std::string text; ///< each part with its length before it, so that no two lists of parts read the same
};

} // namespace fusor::runtime
