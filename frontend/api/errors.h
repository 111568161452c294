// From errors inside (llvm::Error) to errors outside (fusor::Error): whose fault, and the text.
#pragma once
#include "frontend/builder/result.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"

namespace fusor::frontend {

/// The kind by the error's class: FileError (write) is `output`, OutOfMemoryError `memory`, DeviceError `device`,
/// CancelledError `interrupted`, KindError its own, everything else `input`. Several errors: the first one's kind.
Error toPublic(llvm::Error error);

/// An error that says its kind itself.
class KindError : public llvm::ErrorInfo<KindError> {
public:
  static char ID;
  KindError(ErrorKind kind, std::string text) : kind(kind), text(std::move(text)) {}
  const ErrorKind kind;
  const std::string text;
  void log(llvm::raw_ostream &out) const override;
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }
};

template <typename... Args> llvm::Error failure(ErrorKind kind, const char *format, Args &&...args) {
  return llvm::make_error<KindError>(kind, llvm::formatv(format, std::forward<Args>(args)...).str());
}
/// The user's mistake.
template <typename... Args> llvm::Error inputError(const char *format, Args &&...args) {
  return failure(ErrorKind::input, format, std::forward<Args>(args)...);
}

/// The text as it is printed: "error: " in front where no line of it says so already.
std::string errorText(llvm::StringRef text);

} // namespace fusor::frontend
