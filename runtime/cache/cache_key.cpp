#include "runtime/cache/cache_key.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <xxhash.h>

namespace fusor::runtime {

std::string CacheKey::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << llvm::format_hex_no_prefix(high, 16) << llvm::format_hex_no_prefix(low, 16);
  return os.str();
}

std::optional<CacheKey> CacheKey::parse(llvm::StringRef text) {
  CacheKey key;
  bool wrong = text.size() != 32 || text.take_front(16).getAsInteger(16, key.high) ||
               text.drop_front(16).getAsInteger(16, key.low) || key.str() != text;
  if (wrong) return std::nullopt;
  return key;
}

CacheKey hashBytes(llvm::StringRef bytes) {
  XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

CacheKeyBuilder &CacheKeyBuilder::add(llvm::StringRef name, llvm::StringRef value) {
  for (llvm::StringRef part : {name, value}) text += std::to_string(part.size()) + ":" + part.str();
  return *this;
}

} // namespace fusor::runtime
