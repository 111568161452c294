// How compiling and running fail, for callers that must tell the cases apart (the CLI maps them to exit codes).
#pragma once
#include "llvm/Support/Error.h"
#include <string>

namespace fusor::runtime {

/// Memory does not suffice (exit 75): planned or requested bytes, and what would lower them.
class OutOfMemoryError : public llvm::ErrorInfo<OutOfMemoryError> {
public:
  static char ID;
  OutOfMemoryError(int64_t neededBytes, int64_t limitBytes, std::string text)
      : neededBytes(neededBytes), limitBytes(limitBytes), text(std::move(text)) {}
  const int64_t neededBytes, limitBytes; // limit 0: the machine refused
  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override { return std::make_error_code(std::errc::not_enough_memory); }

private:
  std::string text;
};

/// A device or library is missing or failed (exit 69).
class DeviceError : public llvm::ErrorInfo<DeviceError> {
public:
  static char ID;
  explicit DeviceError(std::string text) : text(std::move(text)) {}
  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

private:
  std::string text;
};

/// The caller's cancel flag was set (exit 130).
class CancelledError : public llvm::ErrorInfo<CancelledError> {
public:
  static char ID;
  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override { return std::make_error_code(std::errc::interrupted); }
};

/// Under CompileOptions::check a cluster did not compute what its body does (exit 1): kernel, op, element and values.
class CheckError : public llvm::ErrorInfo<CheckError> {
public:
  static char ID;
  explicit CheckError(std::string text) : text(std::move(text)) {}
  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

private:
  std::string text;
};

} // namespace fusor::runtime
