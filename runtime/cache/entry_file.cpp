#include "runtime/cache/entry_file.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"

namespace fusor::runtime {
namespace {

constexpr llvm::StringLiteral kEntryMagic("FUSORCE1");
constexpr size_t kHeaderBytes = 48;

using llvm::support::endian::read64le;
using llvm::support::endian::write64le;

} // namespace

std::string entryHeader(const CacheKey &key, llvm::StringRef contents) {
  CacheKey checksum = hashBytes(contents);
  std::string header(kHeaderBytes, '\0');
  header.replace(0, kEntryMagic.size(), kEntryMagic.data(), kEntryMagic.size());
  write64le(&header[8], key.low);
  write64le(&header[16], key.high);
  write64le(&header[24], contents.size());
  write64le(&header[32], checksum.low);
  write64le(&header[40], checksum.high);
  return header;
}

std::optional<llvm::StringRef> decodeEntry(llvm::StringRef file, const CacheKey &key, std::string &problem) {
  if (file.size() < kHeaderBytes || !file.startswith(kEntryMagic)) {
    problem = "it does not begin with the header of an entry";
    return std::nullopt;
  }
  if (CacheKey found{read64le(&file.data()[16]), read64le(&file.data()[8])}; !(found == key)) {
    problem = "it holds the entry of another key, " + found.str();
    return std::nullopt;
  }
  llvm::StringRef contents = file.drop_front(kHeaderBytes);
  if (uint64_t length = read64le(&file.data()[24]); length != contents.size()) {
    problem = llvm::formatv("expected {0} bytes, found {1}", length, contents.size()).str();
    return std::nullopt;
  }
  if (CacheKey expected{read64le(&file.data()[40]), read64le(&file.data()[32])}; !(expected == hashBytes(contents))) {
    problem = "its checksum is wrong";
    return std::nullopt;
  }
  return contents;
}

} // namespace fusor::runtime
