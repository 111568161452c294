#include "frontend/dump/dump_folder.h"
#include "frontend/api/errors.h"
#include "runtime/checkpoint/atomic_file.h"
#include "runtime/checkpoint/file_error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

namespace fusor::frontend {
namespace {

using runtime::FileError;
namespace fs = llvm::sys::fs;

constexpr llvm::StringLiteral kTemporary = ".tmp-";

llvm::Error writeFailed(llvm::StringRef path, std::error_code code) {
  return llvm::make_error<FileError>(FileError::Action::Write, path, code);
}

bool isEmptyFolder(llvm::StringRef path) {
  std::error_code code;
  return fs::directory_iterator(path, code) == fs::directory_iterator() && !code;
}

// Folders that a run which was killed left beside `place`.
void removeAbandoned(llvm::StringRef place) {
  std::error_code code;
  llvm::StringRef parent = llvm::sys::path::parent_path(place);
  std::vector<std::string> abandoned;
  for (fs::directory_iterator it(parent.empty() ? "." : parent, code), end; it != end && !code; it.increment(code)) {
    llvm::StringRef name = llvm::sys::path::filename(it->path());
    int pid = 0;
    if (!name.consume_front(llvm::sys::path::filename(place)) || !name.consume_front(kTemporary)) continue;
    if (!name.getAsInteger(10, pid) && pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH)
      abandoned.push_back(it->path());
  }
  for (const std::string &path : abandoned) fs::remove_directories(path);
}

} // namespace

llvm::Error writeInto(llvm::StringRef folder, const llvm::Twine &name, llvm::StringRef bytes) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  llvm::StringRef parent = llvm::sys::path::parent_path(path);
  if (std::error_code code = fs::create_directories(parent, true, fs::all_all)) return writeFailed(parent, code);
  auto file = runtime::AtomicFile::create(path);
  if (!file) return file.takeError();
  if (auto error = file->write(bytes)) return error;
  return file->commit(/*durable=*/false);
}

llvm::Expected<DumpFolder> DumpFolder::create(llvm::StringRef given) {
  llvm::StringRef place = given.size() > 1 ? given.rtrim('/') : given;
  if (fs::exists(place)) {
    if (!fs::is_directory(place)) return inputError("--dump {0}: there is a file of that name; give a folder", given);
    if (!isEmptyFolder(place) && !fs::exists(place + "/dump.json"))
      return inputError("--dump {0}: the folder is not empty and is no dump (it has no dump.json): give a new one, or "
                        "remove it",
                        given);
  }
  removeAbandoned(place);
  std::string path = (place + kTemporary + std::to_string(::getpid())).str();
  fs::remove_directories(path);
  if (std::error_code code = fs::create_directories(path, true, fs::all_all)) return writeFailed(path, code);
  return DumpFolder(place.str(), std::move(path));
}

DumpFolder::DumpFolder(DumpFolder &&other) noexcept
    : place_(std::move(other.place_)), path_(std::exchange(other.path_, std::string())) {}

DumpFolder::~DumpFolder() {
  if (!path_.empty()) fs::remove_directories(path_);
}

llvm::Error DumpFolder::write(const llvm::Twine &name, llvm::StringRef bytes) const {
  return writeInto(path_, name, bytes);
}

llvm::Error DumpFolder::commit() {
  // An empty folder is replaced by rename alone; an older dump changes places with this one.
  if (std::rename(path_.c_str(), place_.c_str()) == 0) {
    path_.clear();
    return llvm::Error::success();
  }
  if (errno != ENOTEMPTY && errno != EEXIST) return runtime::writeError(place_, errno);
  if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, place_.c_str(), RENAME_EXCHANGE) == 0)
    return llvm::Error::success(); // the destructor removes the older one, which has our path now
  if (errno != EINVAL && errno != ENOSYS) return runtime::writeError(place_, errno);
  std::string older = path_ + "-older"; // a file system that cannot exchange
  if (std::rename(place_.c_str(), older.c_str()) != 0) return runtime::writeError(place_, errno);
  if (std::rename(path_.c_str(), place_.c_str()) != 0) {
    int number = errno;
    std::rename(older.c_str(), place_.c_str());
    return runtime::writeError(place_, number);
  }
  path_ = std::move(older);
  return llvm::Error::success();
}

} // namespace fusor::frontend
