#include "tests/support/expected_error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace fusor::tests {
namespace {

// One thing said: by a comment (what must be said) or by a diagnostic.
struct Remark {
  std::string kind;              // "error", "note", "hint"
  unsigned line = 0, column = 0; // 0: any
  std::string text;
  std::string str() const {
    std::string where = line ? llvm::formatv(" at {0}", line).str() : "";
    if (line && column) where += llvm::formatv(":{0}", column).str();
    return kind + where + ": " + text;
  }
};

// "error@+1:8 {{text}}" after "expected-"; `line` is where the comment is.
std::optional<Remark> parseExpectation(llvm::StringRef comment, unsigned line) {
  Remark remark;
  remark.kind = comment.take_while([](char c) { return llvm::isAlpha(c); }).str();
  comment = comment.drop_front(remark.kind.size());
  int offset = 0;
  remark.line = line;
  if (comment.consume_front("@")) {
    comment.consume_front("+");
    if (comment.consumeInteger(10, offset)) return std::nullopt;
  }
  remark.line = line + offset;
  if (comment.consume_front(":") && comment.consumeInteger(10, remark.column)) return std::nullopt;
  auto [before, rest] = comment.split("{{");
  size_t end = rest.rfind("}}");
  if (!before.trim().empty() || end == llvm::StringRef::npos) return std::nullopt;
  remark.text = rest.take_front(end).str();
  if (remark.kind == "hint") remark.line = 0;
  return remark;
}

bool fits(const Remark &expected, const Remark &said) {
  return expected.kind == said.kind && (!expected.line || expected.line == said.line) &&
         (!expected.column || expected.column == said.column) && llvm::StringRef(said.text).contains(expected.text);
}

} // namespace

std::string checkExpectedErrors(llvm::StringRef text, llvm::ArrayRef<frontend::Diagnostic> diagnostics) {
  std::string problems;
  std::vector<Remark> expected, said;
  llvm::SmallVector<llvm::StringRef, 0> lines;
  text.split(lines, '\n');
  for (unsigned i = 0; i < lines.size(); ++i) {
    auto [code, comment] = lines[i].split("// expected-");
    if (comment.empty()) continue;
    if (auto remark = parseExpectation(comment, i + 1))
      expected.push_back(std::move(*remark));
    else
      problems += llvm::formatv("line {0} has an expectation of no known form: {1}\n", i + 1, comment).str();
  }
  for (const auto &diagnostic : diagnostics) {
    static constexpr const char *kinds[] = {"error", "warning", "note"};
    said.push_back({kinds[static_cast<unsigned>(diagnostic.severity)], diagnostic.location.line,
                    diagnostic.location.column, diagnostic.message});
    for (const auto &note : diagnostic.notes)
      said.push_back({"note", note.location.line, note.location.column, note.message});
    if (!diagnostic.hint.empty()) said.push_back({"hint", 0, 0, diagnostic.hint});
  }
  for (const Remark &want : expected) {
    auto it = llvm::find_if(said, [&](const Remark &r) { return fits(want, r); });
    if (it == said.end())
      problems += "expected and not said: " + want.str() + "\n";
    else
      said.erase(it);
  }
  for (const Remark &extra : said) problems += "said and not expected: " + extra.str() + "\n";
  return problems;
}

} // namespace fusor::tests
