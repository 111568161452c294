// Writing a file so that a crash, a full disk or a second writer leaves either the old file or the new one, never a
// mix.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace fusor::runtime {

/// Bytes go to a temporary file in the same folder; commit() makes it the file: fsync, rename, fsync of the folder.
/// Destroyed without commit(), it removes the temporary file and the old file stays. All errors are FileError (write).
///
/// A path that exists and is no regular file (/dev/stdout, /dev/full) is written in place: renaming over a device would
/// replace it. A symbolic link is followed, so it keeps pointing to the newest file.
class AtomicFile {
public:
  static llvm::Expected<AtomicFile> create(llvm::StringRef path);
  AtomicFile(AtomicFile &&other);
  AtomicFile &operator=(AtomicFile &&) = delete;
  ~AtomicFile();

  /// Appends.
  llvm::Error write(llvm::ArrayRef<uint8_t> bytes);
  llvm::Error write(llvm::StringRef text);

  /// Writes at `offset` bytes from the start; what lies before and was never written reads as zeros.
  llvm::Error writeAt(uint64_t offset, llvm::ArrayRef<uint8_t> bytes);

  /// Once, after the last write. `durable = false` skips both fsyncs: still all or nothing for other processes, but a
  /// power cut may lose it; for caches.
  llvm::Error commit(bool durable = true);
  /// As commit(false), unless the file is there by now: then that one stays, and the answer is false.
  llvm::Expected<bool> commitUnlessThere();

  llvm::StringRef path() const { return target; }

private:
  AtomicFile(std::string target, std::string temporary, int descriptor);

  std::string target;
  std::string temporary; ///< empty when written in place
  int descriptor;        ///< -1 once committed or moved from
  uint64_t end = 0;      ///< where write() appends
};

} // namespace fusor::runtime
