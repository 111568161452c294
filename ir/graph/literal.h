// Literals of IR text: the one place that decides how numbers and strings are spelt.
#pragma once
#include "llvm/ADT/StringRef.h"
#include <string>

namespace fusor::ir {

/// The shortest decimal that reads back as the same double, always recognisable as a real: 1.0, 0.1, 1e-05, inf, -inf,
/// nan.
std::string realLiteral(double value);
/// "text" with \" \\ \n \t and \xHH escapes.
std::string quoted(llvm::StringRef text);

} // namespace fusor::ir
