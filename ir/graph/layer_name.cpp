#include "ir/graph/layer_name.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace fusor::ir {

llvm::StringRef layerOfName(llvm::StringRef name) {
  for (llvm::StringRef prefix : {"new.", "adamw.m.", "adamw.v.", "d.", "accum."}) name.consume_front(prefix);
  name = name.ltrim("/");
  for (size_t begin = 0; begin < name.size();) {
    size_t end = std::min(name.find_first_of("./", begin), name.size());
    llvm::StringRef part = name.slice(begin, end);
    if (begin > 0 && !part.empty() && llvm::all_of(part, llvm::isDigit)) return name.take_front(end);
    begin = end + 1;
  }
  return "";
}

} // namespace fusor::ir
