// The two ways a file can fail: the system refuses (FileError), or what it holds is wrong (FileContentError).
//
// A caller that must tell them apart (the CLI exits 74 when a file could not be written, 1 when the user's file is
// wrong):
//   llvm::handleErrors(std::move(error), [&](const FileError &e) { exit = e.isWrite() ? 74 : 1; }, ...);
#pragma once
#include "llvm/Support/Error.h"
#include <string>
#include <system_error>

namespace fusor::runtime {

/// A system call on a file failed: "cannot write 'a.safetensors': No space left on device".
class FileError : public llvm::ErrorInfo<FileError> {
public:
  enum class Action { Read, Write };
  static char ID;

  FileError(Action action, llvm::StringRef path, std::error_code code);

  bool isWrite() const { return action == Action::Write; }
  llvm::StringRef path() const { return filePath; }
  std::error_code code() const { return errorCode; }

  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override { return errorCode; }

private:
  Action action;
  std::string filePath;
  std::error_code errorCode;
};

/// A file was read but is not what it should be: "a.safetensors: tensor 'w': expected ..., found ...".
class FileContentError : public llvm::ErrorInfo<FileContentError> {
public:
  static char ID;

  FileContentError(llvm::StringRef path, const llvm::Twine &problem);

  llvm::StringRef path() const { return filePath; }
  llvm::StringRef problem() const { return text; }

  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

private:
  std::string filePath;
  std::string text;
};

/// The errno of the call that just failed, as an error about `path`.
llvm::Error readError(llvm::StringRef path, int errorNumber);
llvm::Error writeError(llvm::StringRef path, int errorNumber);

/// A name from a file, fit for a message: in quotes, control characters and bytes outside ASCII escaped, shortened to
/// 120.
std::string quotedName(llvm::StringRef name);

} // namespace fusor::runtime
