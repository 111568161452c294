// What took long to make and can be made again: cubins, GEMM plans. Kept in files, shared by all processes of a user.
//
//   ROOT/v1/cubin/3f/3f62...c1     a header with a checksum, then the bytes that were put
//
// An entry is written to a temporary file and renamed, so a reader sees a whole entry or none, whatever other processes
// do or however they end. Entries are never changed: a key stands for one content. A damaged one counts as absent.
#pragma once
#include "runtime/cache/cache_key.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Error.h"
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace fusor::runtime {

/// Whether `text` can be a kind of entries, "cubin": a folder name of letters, digits, '_' and '-', shorter than 64.
bool isCacheKind(llvm::StringRef text);

/// All members may be called from several threads.
class Cache {
public:
  struct Stats {
    int64_t hits = 0, misses = 0, corrupt = 0, puts = 0; ///< of this process; a corrupt entry is also a miss
    int64_t entries = 0, bytes = 0;                      ///< on disk, of all processes; bytes of files
  };
  struct Entry {
    std::string kind;
    CacheKey key;
  };

  /// $FUSOR_CACHE_DIR, else $XDG_CACHE_HOME/fusor, else $HOME/.cache/fusor; empty when none of them is set.
  static std::string defaultRoot();

  /// Makes the folder when it is missing. Errors: FileError (write).
  static llvm::Expected<std::unique_ptr<Cache>> open(llvm::StringRef root);

  /// What was put under this key, or nothing. `kind` satisfies isCacheKind.
  std::optional<std::string> get(llvm::StringRef kind, const CacheKey &key);

  /// Errors: FileError (write); the caller goes on without, but says so.
  llvm::Error put(llvm::StringRef kind, const CacheKey &key, llvm::StringRef bytes);

  /// put(), unless a sound entry is there: then that one stays. What is there now, for several processes to agree on
  /// something that comes out differently each time.
  llvm::Expected<std::string> putFirst(llvm::StringRef kind, const CacheKey &key, llvm::StringRef bytes);

  /// Whether such an entry was there; it is not any more. Errors: FileError (write).
  llvm::Expected<bool> remove(llvm::StringRef kind, const CacheKey &key);

  /// Whether there may be entries of this kind: costs one look at a folder, counts as neither hit nor miss.
  bool mayHave(llvm::StringRef kind) const;

  Stats stats() const;

  /// Reads every entry, removes the damaged ones and what crashed writers left behind; one note for each.
  std::vector<std::string> verify();

  /// Removes all entries of all kinds; says how many. Other files under the root stay. Errors: FileError (write).
  llvm::Expected<int64_t> clear();

  /// All entries, sorted by kind and key.
  std::vector<Entry> entries() const;

  /// Notes on damaged entries met since the last call: "cache: ignored a damaged entry, PATH: ...".
  std::vector<std::string> takeNotes();

  llvm::StringRef root() const { return rootFolder; }

private:
  llvm::Expected<bool> write(llvm::StringRef kind, const CacheKey &key, llvm::StringRef bytes, bool replaces);
  explicit Cache(llvm::StringRef root) : rootFolder(root) {}
  std::string pathOf(llvm::StringRef kind, const CacheKey &key) const;

  std::string rootFolder;
  std::atomic<int64_t> hits{0}, misses{0}, corrupt{0}, puts{0};
  std::mutex notesLock;
  std::vector<std::string> notes;
};

} // namespace fusor::runtime
