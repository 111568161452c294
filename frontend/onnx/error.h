// The text of what is wrong, without the place: the importer adds it.
#pragma once
#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"

namespace fusor::onnx {

template <typename... Args> llvm::Error problem(const char *format, Args &&...args) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 llvm::formatv(format, std::forward<Args>(args)...).str());
}

} // namespace fusor::onnx
