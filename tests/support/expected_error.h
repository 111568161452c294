// Checks the diagnostics of a text against comments in it, one for each diagnostic, note and hint:
//
//   // expected-error@+1:8 {{'add' operands must broadcast}}   an error on the next line, caret at column 8 (:8 may be
//   left out)
//   // expected-note@-3 {{%b is declared here}}                a note three lines up
//   // expected-hint {{did you mean 'add'?}}                   a hint of any error
//
// The text in {{ }} is part of the message.
#pragma once
#include "frontend/text/diagnostic.h"
#include <string>

namespace fusor::tests {

/// "" where `diagnostics` are exactly what the comments of `text` expect; else what is missing and what is too much.
std::string checkExpectedErrors(llvm::StringRef text, llvm::ArrayRef<frontend::Diagnostic> diagnostics);

} // namespace fusor::tests
