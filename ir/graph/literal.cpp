#include "ir/graph/literal.h"
#include "llvm/ADT/StringExtras.h"
#include <charconv>
#include <cmath>

namespace fusor::ir {

std::string realLiteral(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[32];
  auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string quoted(llvm::StringRef text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (llvm::isPrint(c))
      out += c;
    else
      out += {'\\', 'x', llvm::hexdigit((static_cast<unsigned char>(c) >> 4) & 15), llvm::hexdigit(c & 15)};
  }
  return out + "\"";
}

} // namespace fusor::ir
