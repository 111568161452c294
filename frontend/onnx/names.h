// Names out of a file, made fit to be shown: in messages, in locations, in the IR.
#pragma once
#include "llvm/ADT/StringRef.h"
#include <string>

namespace fusor::onnx {

/// At most kMaxNameLength bytes, control bytes as '?'. For messages.
std::string shown(llvm::StringRef name);
/// Letters, digits and ._/:- as they are, everything else '_': safe in the comment of a kernel.
std::string locationName(llvm::StringRef name);

} // namespace fusor::onnx
