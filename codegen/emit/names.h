// Identifiers of kernel text. They are made from IR names, never taken as they are: IR names come from files.
//
//   "blocks.3.fc1.weight.bf16" -> fc1_weight      "y" again -> y2      "while" -> while2      "a b/c" -> a_b_c      ""
//   -> v
#pragma once
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"
#include <string>

namespace fusor::codegen {

/// `name` in [a-zA-Z0-9_], beginning with a letter, not longer than `most`; "v" when nothing is left. Of a dotted name
/// the last three parts, but for layer numbers (blocks.3) and dtypes: layers have the same names.
std::string identifierFrom(llvm::StringRef name, unsigned most = 24);

class NamePool {
public:
  /// An identifier like `wanted` that nobody has yet: not a keyword, nor a name that kernels use themselves.
  std::string make(llvm::StringRef wanted);

private:
  llvm::StringSet<> taken_;
};

} // namespace fusor::codegen
