// Names in IR text: `%h`, `@blocks.0.fc1.weight`, `@"weird name"`. Names come from users and files and may be anything.
#pragma once
#include "llvm/ADT/StringRef.h"
#include <string>

namespace fusor::ir {

/// [A-Za-z_][A-Za-z0-9_.$-]*: may follow % or @ without quotes.
bool isPlainName(llvm::StringRef name);
/// [A-Za-z_][A-Za-z0-9_]*: what a symbol of a dim must be, as dims have no quotes.
bool isSymbolName(llvm::StringRef name);
/// The name after its sigil ('%' or '@'), quoted where it is not plain.
std::string spelled(char sigil, llvm::StringRef name);
/// "bias" of "blocks.0.fc1.bias": what a fusion calls its argument for that persistent value unless told otherwise.
llvm::StringRef lastPart(llvm::StringRef name);

} // namespace fusor::ir
