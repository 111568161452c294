// Identifiers of kernel text. They are made from IR names, never taken as they are: IR names come from files.
//
//   "blocks.3.fc1.bias" -> bias      "y" again -> y2      "int" -> int2      "ä b/c" -> b_c      "" -> v
#pragma once
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"
#include <string>

namespace fusor::codegen {

/// The last dotted part of `name` in [a-zA-Z0-9_], not longer than 24, beginning with a letter; "v" when nothing is left.
std::string identifierFrom(llvm::StringRef name);

class NamePool {
public:
  /// An identifier like `wanted` that nobody has yet: not a keyword, nor a name that kernels use themselves.
  std::string make(llvm::StringRef wanted);

private:
  llvm::StringSet<> taken_;
};

} // namespace fusor::codegen
