#include "frontend/onnx/names.h"
#include "frontend/onnx/limits.h"
#include "llvm/ADT/StringExtras.h"

namespace fusor::onnx {

std::string shown(llvm::StringRef name) {
  std::string text = name.take_front(kMaxNameLength).str();
  for (char &c : text)
    if (!(c & 0x80) && !llvm::isPrint(c)) c = '?';
  return name.size() > kMaxNameLength ? text + "..." : text;
}

std::string locationName(llvm::StringRef name) {
  std::string text = name.take_front(kMaxNameLength).str();
  for (char &c : text)
    if (!llvm::isAlnum(c) && !llvm::StringRef("._/:-").contains(c)) c = '_';
  return text;
}

std::string domainOf(llvm::StringRef domain) { return domain == "ai.onnx" ? "" : domain.str(); }
std::string shownDomain(llvm::StringRef domain) { return domain.empty() ? "ai.onnx" : shown(domain); }

} // namespace fusor::onnx
