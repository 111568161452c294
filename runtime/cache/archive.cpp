#include "runtime/cache/archive.h"

#include "runtime/cache/entry_file.h"
#include "runtime/checkpoint/atomic_file.h"
#include "runtime/checkpoint/file_error.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"

namespace fusor::runtime {
namespace {

// The file: "FUSORCA1"; then per entry the kind (1 byte of length, text), the key as 32 hex digits, the length of the
// entry's file (8 bytes, little endian) and that file, which has its own checksum; then "END" and the number of entries
// (8 bytes).
constexpr llvm::StringLiteral kArchiveMagic("FUSORCA1");
constexpr llvm::StringLiteral kEnd = llvm::StringLiteral::withInnerNUL("\0END"); // no kind has length 0

std::string number(uint64_t value) {
  std::string bytes(8, '\0');
  llvm::support::endian::write64le(bytes.data(), value);
  return bytes;
}

struct ArchivedEntry {
  llvm::StringRef kind;
  CacheKey key;
  llvm::StringRef contents;
};

/// Takes one entry off the front; false and the problem when it is damaged.
bool takeEntry(llvm::StringRef &rest, ArchivedEntry &entry, std::string &problem) {
  problem = "the file is cut off";
  size_t kindLength = uint8_t(rest[0]);
  if (rest.size() < 1 + kindLength + 32 + 8) return false;
  entry.kind = rest.substr(1, kindLength);
  std::optional<CacheKey> key = CacheKey::parse(rest.substr(1 + kindLength, 32));
  uint64_t length = llvm::support::endian::read64le(rest.data() + 1 + kindLength + 32);
  rest = rest.drop_front(1 + kindLength + 32 + 8);
  if (!key || !isCacheKind(entry.kind)) {
    problem = "expected the kind and key of an entry, found something else";
    return false;
  }
  if (length > rest.size()) return false;
  entry.key = *key;
  std::optional<llvm::StringRef> contents = decodeEntry(rest.take_front(length), *key, problem);
  if (!contents) return false;
  entry.contents = *contents;
  rest = rest.drop_front(length);
  return true;
}

} // namespace

llvm::Expected<int64_t> exportCache(Cache &cache, llvm::StringRef path) {
  llvm::Expected<AtomicFile> file = AtomicFile::create(path);
  if (!file) return file.takeError();
  if (llvm::Error error = file->write(llvm::StringRef(kArchiveMagic))) return error;
  int64_t count = 0;
  for (const Cache::Entry &entry : cache.entries()) {
    std::optional<std::string> contents = cache.get(entry.kind, entry.key);
    if (!contents) continue; // damaged or cleared meanwhile
    std::string header = entryHeader(entry.key, *contents);
    std::string start = std::string(1, char(entry.kind.size())) + entry.kind + entry.key.str() +
                        number(header.size() + contents->size()) + header;
    if (llvm::Error error = file->write(llvm::StringRef(start))) return error;
    if (llvm::Error error = file->write(llvm::StringRef(*contents))) return error;
    ++count;
  }
  if (llvm::Error error = file->write(llvm::StringRef(kEnd.str() + number(count)))) return error;
  if (llvm::Error error = file->commit()) return error;
  return count;
}

llvm::Expected<int64_t> importCache(Cache &cache, llvm::StringRef path) {
  auto wrong = [&](const llvm::Twine &problem) { return llvm::make_error<FileContentError>(path, problem); };
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer) return llvm::make_error<FileError>(FileError::Action::Read, path, buffer.getError());
  llvm::StringRef rest = (*buffer)->getBuffer();
  if (!rest.consume_front(kArchiveMagic))
    return wrong("expected a file of `fusor cache export`, which begins with " + kArchiveMagic + ", found " +
                 quotedName(rest.take_front(kArchiveMagic.size())));
  std::vector<ArchivedEntry> entries;
  while (!rest.startswith(kEnd)) {
    std::string problem = "the file is cut off";
    ArchivedEntry entry;
    if (rest.empty() || !takeEntry(rest, entry, problem))
      return wrong(llvm::formatv("entry {0}: {1}", entries.size(), problem));
    entries.push_back(entry);
  }
  if (rest.drop_front(kEnd.size()) != number(entries.size()))
    return wrong(llvm::formatv("expected an end after {0} entries, found something else", entries.size()));
  for (const ArchivedEntry &entry : entries)
    if (llvm::Error error = cache.put(entry.kind, entry.key, entry.contents)) return error;
  return int64_t(entries.size());
}

} // namespace fusor::runtime
