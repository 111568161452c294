// What is wrong with a text, where, and how to fix it, as the user sees it:
//
//   mlp.fir:4:8: error: 'add' operands must broadcast to one shape: a is bf16[B, 4096], b is bf16[11008]
//     %s = add %h, %b : bf16[B, 4096]
//          ^
//   mlp.fir:1:77: note: %b is declared here
//   hint: ...
#pragma once
#include "ir/graph/location.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace fusor::frontend {

enum class Severity : uint8_t { error, warning, note };

struct Diagnostic {
  struct Note {
    ir::Location location;
    std::string message;
  };
  Severity severity = Severity::error;
  ir::Location location;  // columns count bytes from 1
  std::string message;    // lower-case, no final period
  std::string sourceLine; // printed with a caret under the column; empty: no caret
  llvm::SmallVector<Note, 1> notes;
  std::string hint; // an action, or empty

  /// The text above, with a line end.
  std::string str() const;
};

/// The Error of everything that reads a file: all that was found, in order.
class DiagnosticError : public llvm::ErrorInfo<DiagnosticError> {
public:
  static char ID;
  explicit DiagnosticError(std::vector<Diagnostic> diagnostics) : diagnostics_(std::move(diagnostics)) {}
  llvm::ArrayRef<Diagnostic> diagnostics() const { return diagnostics_; }
  void log(llvm::raw_ostream &out) const override;
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

private:
  std::vector<Diagnostic> diagnostics_;
};

/// The candidate most like `name`, if one is close enough to be a misspelling.
std::optional<std::string> nearest(llvm::StringRef name, llvm::ArrayRef<std::string> candidates);

} // namespace fusor::frontend
