#include "runtime/checkpoint/file_error.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace fusor::runtime {

char FileError::ID = 0;
char FileContentError::ID = 0;

FileError::FileError(Action action, llvm::StringRef path, std::error_code code)
    : action(action), filePath(path), errorCode(code) {}

void FileError::log(llvm::raw_ostream &os) const {
  os << "cannot " << (isWrite() ? "write" : "read") << " '" << filePath << "': " << errorCode.message();
}

FileContentError::FileContentError(llvm::StringRef path, const llvm::Twine &problem)
    : filePath(path), text(problem.str()) {}

void FileContentError::log(llvm::raw_ostream &os) const { os << filePath << ": " << text; }

llvm::Error readError(llvm::StringRef path, int errorNumber) {
  return llvm::make_error<FileError>(FileError::Action::Read, path,
                                     std::error_code(errorNumber, std::generic_category()));
}

llvm::Error writeError(llvm::StringRef path, int errorNumber) {
  return llvm::make_error<FileError>(FileError::Action::Write, path,
                                     std::error_code(errorNumber, std::generic_category()));
}

std::string quotedName(llvm::StringRef name) {
  constexpr size_t kLongest = 120;
  std::string text;
  llvm::raw_string_ostream os(text);
  os << '\'';
  llvm::printEscapedString(name.take_front(kLongest), os);
  os << (name.size() > kLongest ? "...'" : "'");
  return os.str();
}

} // namespace fusor::runtime
