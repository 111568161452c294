#include "runtime/execute/bucket_key.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>

namespace fusor::runtime {

std::string bucketKey(const ir::SymbolValues &symbols) {
  std::map<std::string, int64_t> sorted;
  for (const auto &entry : symbols) sorted[entry.first().str()] = entry.second;
  std::string key;
  for (const auto &[name, value] : sorted) key += llvm::formatv("{0}={1} ", name, value).str();
  return key;
}

} // namespace fusor::runtime
