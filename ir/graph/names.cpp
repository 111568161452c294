#include "ir/graph/names.h"
#include "ir/graph/literal.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace fusor::ir {
namespace {

bool startsName(llvm::StringRef name) { return !name.empty() && (llvm::isAlpha(name[0]) || name[0] == '_'); }

} // namespace

bool isPlainName(llvm::StringRef name) {
  return startsName(name) &&
         llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || llvm::StringRef("_.$-").contains(c); });
}

bool isSymbolName(llvm::StringRef name) {
  return startsName(name) && llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

std::string spelled(char sigil, llvm::StringRef name) {
  return sigil + (isPlainName(name) ? name.str() : quoted(name));
}

llvm::StringRef lastPart(llvm::StringRef name) {
  llvm::StringRef part = name.rsplit('.').second;
  return part.empty() ? name : part;
}

} // namespace fusor::ir
