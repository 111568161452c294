// The caller's mistakes: a wrong name, shape or size (exit 1).
#pragma once
#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"

namespace fusor::runtime {

template <typename... Args> llvm::Error userError(const char *format, Args &&...args) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 llvm::formatv(format, std::forward<Args>(args)...).str());
}

} // namespace fusor::runtime
