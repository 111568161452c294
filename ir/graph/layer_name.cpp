#include "ir/graph/layer_name.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace fusor::ir {

llvm::StringRef layerOfName(llvm::StringRef name) {
  for (llvm::StringRef prefix : {"new.", "adamw.m.", "adamw.v.", "d.", "accum.", "amax.", "clipped.", "underflow."})
    name.consume_front(prefix);
  name = name.ltrim("/");
  auto isNumber = [](llvm::StringRef part) { return !part.empty() && llvm::all_of(part, llvm::isDigit); };
  llvm::StringRef before;
  for (size_t begin = 0; begin < name.size();) {
    size_t end = std::min(name.find_first_of("./", begin), name.size());
    llvm::StringRef part = name.slice(begin, end);
    // "x.1" is a second %x, "61.2" of an ONNX model that counts its values.
    if (isNumber(part) && !before.empty() && !isNumber(before) && end < name.size()) return name.take_front(end);
    before = part, begin = end + 1;
  }
  return "";
}

} // namespace fusor::ir
