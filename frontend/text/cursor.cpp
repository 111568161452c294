#include "frontend/text/cursor.h"
#include "llvm/Support/FormatVariadic.h"

namespace fusor::frontend {
namespace {

constexpr size_t kShownToken = 40;

std::string found(const Token &token) {
  if (token.is(TokenKind::end)) return "the end of the file";
  if (token.is(TokenKind::invalid)) return token.problem;
  std::string text = token.text.take_front(kShownToken).str();
  return "'" + text + (token.text.size() > kShownToken ? "..." : "") + "'";
}

} // namespace

Cursor::Cursor(llvm::StringRef text, llvm::StringRef fileName)
    : text_(text), fileName_(fileName.str()), tokens_(tokenize(text)) {
  lineStarts_.push_back(0);
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n') lineStarts_.push_back(i + 1);
}

Token Cursor::next() {
  Token token = peek();
  if (pos_ + 1 < tokens_.size()) ++pos_;
  return token;
}

bool Cursor::accept(TokenKind kind) { return at(kind) && (next(), true); }
bool Cursor::acceptWord(llvm::StringRef word) { return atWord(word) && (next(), true); }

bool Cursor::expect(TokenKind kind, llvm::StringRef what) {
  if (accept(kind)) return true;
  expected(what);
  return false;
}

bool Cursor::expectWord(llvm::StringRef word) {
  if (acceptWord(word)) return true;
  expected("'" + word.str() + "'");
  return false;
}

bool Cursor::atStatementEnd() const {
  return at(TokenKind::end) || at(TokenKind::rightBrace) || pos_ == 0 || peek().line != tokens_[pos_ - 1].line;
}

bool Cursor::expectStatementEnd() {
  if (atStatementEnd()) return true;
  expected("the end of the line");
  return false;
}

Diagnostic &Cursor::expected(llvm::StringRef what) {
  const Token &token = peek();
  bool later = pos_ > 0 && token.line != tokens_[pos_ - 1].line;
  if (!later || token.is(TokenKind::invalid)) return expectedHere(what);
  Token behind = tokens_[pos_ - 1];
  behind.column += behind.text.size();
  const char *end = token.is(TokenKind::end) ? "the end of the file" : "the end of the line";
  return error(behind, llvm::formatv("expected {0}, found {1}", what, end).str());
}

Diagnostic &Cursor::expectedHere(llvm::StringRef what) {
  return error(peek(), llvm::formatv("expected {0}, found {1}", what, found(peek())).str());
}

void Cursor::skipStatement(size_t start) {
  size_t failed = pos_;
  if (failed > start && tokens_[failed].line != tokens_[failed - 1].line) --failed; // the statement ended too early
  unsigned lastLine = tokens_[failed].line;
  int depth = 0;
  for (pos_ = start; !at(TokenKind::end); ++pos_) {
    if (depth == 0 && peek().line > lastLine) return;
    if (at(TokenKind::leftBrace)) ++depth;
    if (at(TokenKind::rightBrace) && depth-- == 0) return; // of the block around the statement
    if (depth > 0 || at(TokenKind::rightBrace)) lastLine = std::max(lastLine, peek().line);
  }
}

Diagnostic &Cursor::error(const Token &at, std::string message) { return error(location(at), std::move(message)); }

Diagnostic &Cursor::error(const ir::Location &at, std::string message) {
  Diagnostic diagnostic;
  diagnostic.location = at;
  diagnostic.message = std::move(message);
  if (at.file == fileName_ && at.line) diagnostic.sourceLine = line(at.line).str();
  diagnostics_.push_back(std::move(diagnostic));
  return diagnostics_.back();
}

llvm::StringRef Cursor::line(unsigned number) const {
  return text_.substr(lineStarts_[number - 1]).take_until([](char c) { return c == '\n' || c == '\r'; });
}

} // namespace fusor::frontend
