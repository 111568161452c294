// The folder of a dump while it is being written: beside its place, and put there whole at the end.
//
//   auto folder = DumpFolder::create("d");           // d.tmp-4711 is made; what is wrong with "d" is said now
//   folder->write("plan.json", text);
//   folder->commit();                                // d is there, or what was there before it still is
//
// Destroyed without commit(), it leaves nothing behind.
#pragma once
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include <string>

namespace fusor::frontend {

class DumpFolder {
public:
  /// `place`: absent, an empty folder, or an older dump (it has a dump.json), which commit() replaces. Errors: the
  /// user's for anything else that is there; FileError (write) where the folder beside it cannot be made.
  static llvm::Expected<DumpFolder> create(llvm::StringRef place);
  DumpFolder(DumpFolder &&other) noexcept;
  DumpFolder &operator=(DumpFolder &&) = delete;
  ~DumpFolder();

  const std::string &place() const { return place_; }
  /// Where it is until commit().
  const std::string &path() const { return path_; }
  /// Writes the file `name` ("kernels/a/kernel.cu") of it, making folders as needed. Errors: FileError (write).
  llvm::Error write(const llvm::Twine &name, llvm::StringRef bytes) const;
  llvm::Error commit();

private:
  DumpFolder(std::string place, std::string path) : place_(std::move(place)), path_(std::move(path)) {}
  std::string place_, path_; // path_ is empty once it is committed or moved from
};

/// Writes `bytes` to FOLDER/NAME, making folders as needed. Errors: FileError (write).
llvm::Error writeInto(llvm::StringRef folder, const llvm::Twine &name, llvm::StringRef bytes);

} // namespace fusor::frontend
