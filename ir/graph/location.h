// Where a value came from: a builder call site, a line of IR text, an ONNX node, or the value it was derived from.
#pragma once
#include "llvm/ADT/StringRef.h"
#include <string>

namespace fusor::ir {

struct Location {
  std::string file; // source or IR file, or "onnx:NODE"; empty when unknown
  unsigned line = 0, column = 0;

  bool known() const { return !file.empty(); }
  /// "model.fir:4:8", "train.cpp:12", or "".
  std::string str() const {
    if (!known()) return "";
    std::string text = file;
    if (line) text += ":" + std::to_string(line);
    if (column) text += ":" + std::to_string(column);
    return text;
  }
  /// The caller's line: use as a default argument. (std::source_location is missing in clang 14.)
  static Location here(const char *file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
    return {file, line, 0};
  }
};

} // namespace fusor::ir
