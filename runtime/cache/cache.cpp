#include "runtime/cache/cache.h"

#include "runtime/cache/entry_file.h"
#include "runtime/checkpoint/atomic_file.h"
#include "runtime/checkpoint/file_error.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include <cassert>
#include <chrono>

namespace fusor::runtime {
namespace {

namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

/// The layout of the folder and of entries; a new one starts with an empty cache beside the old one.
constexpr const char *kLayout = "v1";
/// A temporary file this old belongs to a writer that died.
constexpr std::chrono::hours kAbandonedAfter(1);

std::string join(llvm::StringRef folder, const llvm::Twine &a, const llvm::Twine &b = "") {
  llvm::SmallString<256> joined(folder);
  path::append(joined, a, b);
  return std::string(joined);
}

llvm::Error asWriteError(llvm::StringRef where, std::error_code code) {
  return llvm::make_error<FileError>(FileError::Action::Write, where, code);
}

/// Calls f(kind, file) for every file two levels below each kind's folder, in no fixed order.
void forEachFile(llvm::StringRef root, llvm::function_ref<void(llvm::StringRef kind, const std::string &file)> f) {
  std::error_code error;
  for (fs::directory_iterator kind(join(root, kLayout), error), end; !error && kind != end; kind.increment(error)) {
    std::error_code ignored; // another process may be clearing
    for (fs::directory_iterator shard(kind->path(), ignored); !ignored && shard != end; shard.increment(ignored))
      for (fs::directory_iterator file(shard->path(), ignored); !ignored && file != end; file.increment(ignored))
        f(path::filename(kind->path()), file->path());
  }
}

/// The contents of an entry, or what is wrong with it; absent files are neither.
std::optional<std::string> readEntry(const std::string &file, const CacheKey &key, std::string &problem) {
  auto buffer = llvm::MemoryBuffer::getFile(file, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer) {
    if (buffer.getError() != std::errc::no_such_file_or_directory) problem = buffer.getError().message();
    return std::nullopt;
  }
  std::optional<llvm::StringRef> bytes = decodeEntry((*buffer)->getBuffer(), key, problem);
  if (!bytes) return std::nullopt;
  return bytes->str();
}

bool isAbandoned(const std::string &file) {
  fs::file_status status;
  if (!llvm::StringRef(path::filename(file)).contains(".tmp-") || fs::status(file, status)) return false;
  return std::chrono::system_clock::now() - status.getLastModificationTime() > kAbandonedAfter;
}

} // namespace

bool isCacheKind(llvm::StringRef text) {
  return !text.empty() && text.size() < 64 &&
         llvm::all_of(text, [](char c) { return llvm::isAlnum(c) || c == '_' || c == '-'; });
}

std::string Cache::defaultRoot() {
  using llvm::sys::Process;
  if (auto root = Process::GetEnv("FUSOR_CACHE_DIR"); root && !root->empty()) return *root;
  if (auto caches = Process::GetEnv("XDG_CACHE_HOME"); caches && !caches->empty()) return join(*caches, "fusor");
  if (auto home = Process::GetEnv("HOME"); home && !home->empty()) return join(*home, ".cache", "fusor");
  return "";
}

llvm::Expected<std::unique_ptr<Cache>> Cache::open(llvm::StringRef root) {
  if (std::error_code code = fs::create_directories(join(root, kLayout))) return asWriteError(root, code);
  return std::unique_ptr<Cache>(new Cache(root));
}

std::string Cache::pathOf(llvm::StringRef kind, const CacheKey &key) const {
  assert(isCacheKind(kind) && "a kind is a folder name");
  std::string name = key.str();
  llvm::SmallString<256> file(rootFolder);
  path::append(file, kLayout, kind, name.substr(0, 2), name); // 256 folders a kind keep listings short
  return std::string(file);
}

std::optional<std::string> Cache::get(llvm::StringRef kind, const CacheKey &key) {
  std::string file = pathOf(kind, key), problem;
  std::optional<std::string> bytes = readEntry(file, key, problem);
  if (bytes) {
    ++hits;
    return bytes;
  }
  ++misses;
  if (!problem.empty()) {
    ++corrupt;
    std::lock_guard<std::mutex> lock(notesLock);
    notes.push_back("cache: ignored a damaged entry, " + file + ": " + problem);
  }
  return std::nullopt;
}

// Whether these bytes are what is there now.
llvm::Expected<bool> Cache::write(llvm::StringRef kind, const CacheKey &key, llvm::StringRef bytes, bool replaces) {
  std::string file = pathOf(kind, key);
  if (std::error_code code = fs::create_directories(path::parent_path(file))) return asWriteError(file, code);
  llvm::Expected<AtomicFile> writer = AtomicFile::create(file);
  if (!writer) return writer.takeError();
  if (llvm::Error error = writer->write(llvm::StringRef(entryHeader(key, bytes)))) return error;
  if (llvm::Error error = writer->write(bytes)) return error;
  if (!replaces) return writer->commitUnlessThere();
  // Not synced to the disk: after a power cut the checksum finds what is missing, and it can be made again.
  if (llvm::Error error = writer->commit(/*durable=*/false)) return error;
  return true;
}

llvm::Error Cache::put(llvm::StringRef kind, const CacheKey &key, llvm::StringRef bytes) {
  auto isThere = write(kind, key, bytes, /*replaces=*/true);
  if (!isThere) return isThere.takeError();
  ++puts;
  return llvm::Error::success();
}

llvm::Expected<std::string> Cache::putFirst(llvm::StringRef kind, const CacheKey &key, llvm::StringRef bytes) {
  auto isFirst = write(kind, key, bytes, /*replaces=*/false);
  if (!isFirst) return isFirst.takeError();
  if (!*isFirst) {
    std::string problem;
    if (auto there = readEntry(pathOf(kind, key), key, problem)) return std::move(*there);
    if (auto error = put(kind, key, bytes)) return error; // damaged, or cleared meanwhile
    return bytes.str();
  }
  ++puts;
  return bytes.str();
}

llvm::Expected<bool> Cache::remove(llvm::StringRef kind, const CacheKey &key) {
  std::string file = pathOf(kind, key);
  if (!fs::exists(file)) return false;
  if (std::error_code code = fs::remove(file)) return asWriteError(file, code);
  return true;
}

bool Cache::mayHave(llvm::StringRef kind) const {
  llvm::SmallString<256> folder(rootFolder);
  path::append(folder, kLayout, kind);
  return fs::is_directory(folder);
}

Cache::Stats Cache::stats() const {
  Stats stats{hits, misses, corrupt, puts, 0, 0};
  forEachFile(rootFolder, [&](llvm::StringRef, const std::string &file) {
    uint64_t bytes = 0;
    if (!CacheKey::parse(path::filename(file)) || fs::file_size(file, bytes)) return;
    ++stats.entries;
    stats.bytes += int64_t(bytes);
  });
  return stats;
}

std::vector<Cache::Entry> Cache::entries() const {
  std::vector<Entry> found;
  forEachFile(rootFolder, [&](llvm::StringRef kind, const std::string &file) {
    if (std::optional<CacheKey> key = CacheKey::parse(path::filename(file))) found.push_back({kind.str(), *key});
  });
  llvm::sort(found, [](const Entry &a, const Entry &b) {
    return std::tie(a.kind, a.key.high, a.key.low) < std::tie(b.kind, b.key.high, b.key.low);
  });
  return found;
}

std::vector<std::string> Cache::verify() {
  std::vector<std::string> removed;
  forEachFile(rootFolder, [&](llvm::StringRef, const std::string &file) {
    std::string problem;
    if (std::optional<CacheKey> key = CacheKey::parse(path::filename(file)))
      readEntry(file, *key, problem);
    else if (isAbandoned(file))
      problem = "left behind by a writer that did not finish";
    if (problem.empty()) return;
    std::error_code code = fs::remove(file);
    removed.push_back("cache: " + (code ? "cannot remove (" + code.message() + ") " : "removed ") + file + ": " +
                      problem);
  });
  llvm::sort(removed);
  return removed;
}

llvm::Expected<int64_t> Cache::clear() {
  int64_t removed = 0;
  std::string failedFile;
  std::error_code failure;
  forEachFile(rootFolder, [&](llvm::StringRef, const std::string &file) {
    bool isEntry = CacheKey::parse(path::filename(file)).has_value();
    if (!isEntry && !isAbandoned(file)) return;
    if (std::error_code code = fs::remove(file, /*IgnoreNonExisting=*/true)) {
      failure = code;
      failedFile = file;
    } else {
      removed += isEntry;
    }
  });
  if (failure) return asWriteError(failedFile, failure);
  return removed;
}

std::vector<std::string> Cache::takeNotes() {
  std::lock_guard<std::mutex> lock(notesLock);
  return std::exchange(notes, {});
}

} // namespace fusor::runtime
