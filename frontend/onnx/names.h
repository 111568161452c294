// Names out of a file, made fit to be compared and shown: in messages, in locations, in the IR.
#pragma once
#include "llvm/ADT/StringRef.h"
#include <string>

namespace fusor::onnx {

/// At most kMaxNameLength bytes, control bytes as '?'. For messages.
std::string shown(llvm::StringRef name);
/// Letters, digits and ._/:- as they are, everything else '_': safe in the comment of a kernel.
std::string locationName(llvm::StringRef name);
/// A domain as opsets and the operator table have it: "" for ai.onnx, which has two spellings.
std::string domainOf(llvm::StringRef domain);
/// A domain for messages.
std::string shownDomain(llvm::StringRef domain);

} // namespace fusor::onnx
