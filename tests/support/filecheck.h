// LLVM's FileCheck as a function.
#pragma once
#include "llvm/ADT/StringRef.h"
#include <string>

namespace fusor::tests {

/// Whether `output` passes the `// CHECK:` lines (or those of another `prefix`) of `checkFileText`. If not, `message`
/// says which line failed and where, as the FileCheck tool would.
bool fileCheck(llvm::StringRef output, llvm::StringRef checkFileText, std::string &message,
               llvm::StringRef prefix = "CHECK");

} // namespace fusor::tests
