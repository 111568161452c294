#include "frontend/text/diagnostic.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>

namespace fusor::frontend {
namespace {

constexpr size_t kShownLine = 160; // a longer source line is cut around the caret

const char *name(Severity severity) {
  static constexpr const char *names[] = {"error", "warning", "note"};
  return names[static_cast<unsigned>(severity)];
}

std::string place(const ir::Location &location) { return location.known() ? location.str() + ": " : ""; }

// The line and a caret under `column`. Control bytes of a hostile file do not reach the terminal; tabs keep the caret
// in place.
std::string sourceWithCaret(llvm::StringRef line, unsigned column) {
  size_t caret = column ? column - 1 : 0;
  size_t start = 0;
  if (line.size() > kShownLine && caret > kShownLine / 2) start = caret - kShownLine / 2;
  llvm::StringRef shown = line.substr(start, kShownLine);
  std::string text = "  ", under = "  ";
  for (char c : shown) text += c == '\t' || (c & 0x80) || llvm::isPrint(c) ? c : '?';
  for (size_t i = start; i < caret; ++i) under += i < line.size() && line[i] == '\t' ? '\t' : ' ';
  return text + "\n" + under + "^\n";
}

bool sameLetters(llvm::StringRef a, llvm::StringRef b) {
  return a.size() == b.size() && std::is_permutation(a.begin(), a.end(), b.begin());
}

} // namespace

char DiagnosticError::ID = 0;

std::string Diagnostic::str() const {
  std::string text = place(location) + name(severity) + ": " + message + "\n";
  if (!sourceLine.empty()) text += sourceWithCaret(sourceLine, location.column);
  for (const Note &note : notes) text += place(note.location) + "note: " + note.message + "\n";
  if (!hint.empty()) text += "hint: " + hint + "\n";
  return text;
}

void DiagnosticError::log(llvm::raw_ostream &out) const {
  for (const Diagnostic &diagnostic : diagnostics_) out << diagnostic.str();
}

std::optional<std::string> nearest(llvm::StringRef name, llvm::ArrayRef<std::string> candidates) {
  constexpr size_t kMostCandidates = 4096, kLongestName = 128; // a hint is not worth a slow error
  if (name.size() < 2 || name.size() > kLongestName) return std::nullopt;
  unsigned best = (name.size() <= 3 ? 1 : std::max<size_t>(2, name.size() / 3)) + 1;
  std::optional<std::string> found;
  for (const std::string &candidate : candidates.take_front(kMostCandidates)) {
    if (candidate.size() > kLongestName) continue;
    unsigned distance = name.edit_distance(candidate, /*AllowReplacements=*/true, best);
    if (distance == 2 && sameLetters(name, candidate)) distance = 1; // two letters swapped: one slip
    if (distance < best) best = distance, found = candidate;
  }
  return found;
}

} // namespace fusor::frontend
