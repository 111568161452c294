#include "runtime/checkpoint/atomic_file.h"

#include "runtime/checkpoint/file_error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fusor::runtime {
namespace {

/// Linux writes at most 0x7ffff000 bytes per call; smaller pieces also let an interrupt be seen.
constexpr size_t kLargestWrite = size_t(64) << 20;

std::string folderOf(llvm::StringRef path) {
  llvm::StringRef folder = llvm::sys::path::parent_path(path);
  return folder.empty() ? "." : folder.str();
}

/// A rename is durable only once the folder that holds the names is. File systems that cannot sync a folder say EINVAL.
int syncFolder(const std::string &folder) {
  int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return errno == EACCES ? 0 : errno; // may be writable but not readable
  int result = ::fsync(descriptor) == 0 || errno == EINVAL ? 0 : errno;
  ::close(descriptor);
  return result;
}

} // namespace

AtomicFile::AtomicFile(std::string target, std::string temporary, int descriptor)
    : target(std::move(target)), temporary(std::move(temporary)), descriptor(descriptor) {}

AtomicFile::AtomicFile(AtomicFile &&other)
    : target(std::move(other.target)), temporary(std::move(other.temporary)), descriptor(other.descriptor),
      end(other.end) {
  other.descriptor = -1;
  other.temporary.clear();
}

AtomicFile::~AtomicFile() {
  if (descriptor >= 0) ::close(descriptor);
  if (!temporary.empty()) ::unlink(temporary.c_str());
}

llvm::Expected<AtomicFile> AtomicFile::create(llvm::StringRef path) {
  struct stat status;
  std::string target = path.str();
  if (::stat(target.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return writeError(path, EISDIR);
    if (!S_ISREG(status.st_mode)) {
      int descriptor = ::open(target.c_str(), O_WRONLY | O_CLOEXEC);
      if (descriptor < 0) return writeError(path, errno);
      return AtomicFile(target, "", descriptor);
    }
    if (::access(target.c_str(), W_OK) != 0) return writeError(path, errno); // read-only on purpose: do not replace it
    llvm::SmallString<128> resolved;
    if (!llvm::sys::fs::real_path(target, resolved)) target = std::string(resolved);
  }
  // The process id tells whose leftovers these are; O_EXCL settles races between threads.
  for (unsigned attempt = 0; attempt < 1000; ++attempt) {
    std::string temporary = llvm::formatv("{0}.tmp-{1}-{2}", target, ::getpid(), attempt).str();
    int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0) return AtomicFile(target, temporary, descriptor);
    if (errno != EEXIST) return writeError(path, errno);
  }
  return writeError(path, EEXIST);
}

llvm::Error AtomicFile::write(llvm::ArrayRef<uint8_t> bytes) {
  while (!bytes.empty()) {
    // pwrite needs a seekable file; a pipe written in place is not.
    ssize_t written = temporary.empty()
                          ? ::write(descriptor, bytes.data(), std::min(bytes.size(), kLargestWrite))
                          : ::pwrite(descriptor, bytes.data(), std::min(bytes.size(), kLargestWrite), end);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return writeError(target, errno);
    bytes = bytes.drop_front(written);
    end += written;
  }
  return llvm::Error::success();
}

llvm::Error AtomicFile::write(llvm::StringRef text) {
  return write(llvm::ArrayRef<uint8_t>(reinterpret_cast<const uint8_t *>(text.data()), text.size()));
}

llvm::Error AtomicFile::writeAt(uint64_t offset, llvm::ArrayRef<uint8_t> bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::pwrite(descriptor, bytes.data(), std::min(bytes.size(), kLargestWrite), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return writeError(target, errno);
    bytes = bytes.drop_front(written);
    offset += written;
  }
  return llvm::Error::success();
}

llvm::Error AtomicFile::commit(bool durable) {
  bool inPlace = temporary.empty();
  if (durable && ::fsync(descriptor) != 0 && !(inPlace && (errno == EINVAL || errno == ENOTSUP)))
    return writeError(target, errno);
  int closing = descriptor;
  descriptor = -1;
  if (::close(closing) != 0) return writeError(target, errno); // NFS reports a full disk here
  if (inPlace) return llvm::Error::success();
  if (::rename(temporary.c_str(), target.c_str()) != 0) return writeError(target, errno);
  temporary.clear();
  if (durable)
    if (int errorNumber = syncFolder(folderOf(target))) return writeError(target, errorNumber);
  return llvm::Error::success();
}

llvm::Expected<bool> AtomicFile::commitUnlessThere() {
  if (temporary.empty()) {
    if (auto error = commit(false)) return error;
    return true;
  }
  int closing = std::exchange(descriptor, -1);
  if (::close(closing) != 0) return writeError(target, errno);
  bool isFirst = ::link(temporary.c_str(), target.c_str()) == 0;
  if (!isFirst && errno == EEXIST) return false; // the temporary file goes with this object
  // A file system without links: the last one wins.
  if (!isFirst && ::rename(temporary.c_str(), target.c_str()) != 0) return writeError(target, errno);
  if (isFirst) ::unlink(temporary.c_str());
  temporary.clear();
  return true;
}

} // namespace fusor::runtime
