// A folder of its own for a test, removed at its end.
#pragma once
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <string>
#include <vector>

class TemporaryFolder {
public:
  TemporaryFolder() {
    if (llvm::sys::fs::createUniqueDirectory("fusor-test", root)) llvm::report_fatal_error("no temporary folder");
  }
  ~TemporaryFolder() { llvm::sys::fs::remove_directories(root); }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  std::string path(llvm::StringRef name = "") const { return (root + "/" + name).str(); }

  void write(llvm::StringRef name, llvm::StringRef contents) const {
    std::error_code error;
    llvm::raw_fd_ostream os(path(name), error);
    os << contents;
  }

  std::string read(llvm::StringRef name) const {
    auto buffer = llvm::MemoryBuffer::getFile(path(name), false, false);
    return buffer ? (*buffer)->getBuffer().str() : "";
  }

  /// Names in the folder, sorted.
  std::vector<std::string> entries() const {
    std::vector<std::string> names;
    std::error_code error;
    for (llvm::sys::fs::directory_iterator it(root, error), end; !error && it != end; it.increment(error))
      names.push_back(llvm::sys::path::filename(it->path()).str());
    std::sort(names.begin(), names.end());
    return names;
  }

private:
  llvm::SmallString<128> root;
};
