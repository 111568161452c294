#include "frontend/api/errors.h"
#include "runtime/checkpoint/file_error.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/execute/run_error.h"
#include <cstdio>

namespace fusor {
namespace frontend {

char KindError::ID;

void KindError::log(llvm::raw_ostream &out) const { out << text; }

Error toPublic(llvm::Error error) {
  ErrorKind kind = ErrorKind::none;
  std::string text;
  llvm::handleAllErrors(std::move(error), [&](const llvm::ErrorInfoBase &e) {
    ErrorKind own = ErrorKind::input;
    if (e.isA<KindError>()) own = static_cast<const KindError &>(e).kind;
    if (e.isA<runtime::FileError>() && static_cast<const runtime::FileError &>(e).isWrite()) own = ErrorKind::output;
    if (e.isA<runtime::OutOfMemoryError>()) own = ErrorKind::memory;
    if (e.isA<runtime::DeviceError>()) own = ErrorKind::device;
    if (e.isA<runtime::KernelCompileError>()) own = ErrorKind::device;
    if (e.isA<runtime::CancelledError>()) own = ErrorKind::interrupted;
    if (kind == ErrorKind::none) kind = own;
    if (!text.empty()) text += "\n";
    text += llvm::StringRef(e.message()).rtrim('\n');
  });
  if (kind == ErrorKind::none) return {};
  return {kind, std::move(text)};
}

std::string errorText(llvm::StringRef text) {
  llvm::StringRef first = text.split('\n').first;
  bool says = first.startswith("error: ") || first.contains(": error: ");
  return (says ? text.str() : "error: " + text.str()) + "\n";
}

} // namespace frontend

int report(const Error &error) {
  if (error) std::fputs(frontend::errorText(error.text()).c_str(), stderr);
  return error.exitCode();
}

} // namespace fusor
