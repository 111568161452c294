// The parser's place in the token stream, and the errors it has found so far.
#pragma once
#include "frontend/text/diagnostic.h"
#include "frontend/text/lexer.h"

namespace fusor::frontend {

class Cursor {
public:
  Cursor(llvm::StringRef text, llvm::StringRef fileName);

  const Token &peek(size_t ahead = 0) const { return tokens_[std::min(pos_ + ahead, tokens_.size() - 1)]; }
  Token next();
  bool at(TokenKind kind) const { return peek().is(kind); }
  bool atWord(llvm::StringRef word) const { return peek().isWord(word); }
  bool accept(TokenKind kind);
  bool acceptWord(llvm::StringRef word);
  /// Takes a token of `kind`; otherwise an error "expected `what`, found ..." and false.
  bool expect(TokenKind kind, llvm::StringRef what);
  bool expectWord(llvm::StringRef word);
  /// The next token is on a later line than the last one taken, or closes the block.
  bool atStatementEnd() const;
  bool expectStatementEnd();
  /// "expected `what`, found ..." at the next token; where that is on a later line, at the end of this one.
  Diagnostic &expected(llvm::StringRef what);
  /// The same at the next token wherever it is: for what begins a line.
  Diagnostic &expectedHere(llvm::StringRef what);

  size_t position() const { return pos_; }
  void rewind(size_t position) { pos_ = position; }
  /// Goes behind the statement that began at `start` and failed here: to the next line on which its braces are closed.
  void skipStatement(size_t start);

  Diagnostic &error(const Token &at, std::string message);
  Diagnostic &error(const ir::Location &at, std::string message);
  /// Nothing is gained by reading on.
  bool tooManyErrors() const { return diagnostics_.size() >= kMostErrors; }
  bool hasErrors() const { return !diagnostics_.empty(); }
  std::vector<Diagnostic> takeDiagnostics() { return std::move(diagnostics_); }
  ir::Location location(const Token &token) const { return {fileName_, token.line, token.column}; }

private:
  static constexpr size_t kMostErrors = 20;
  llvm::StringRef line(unsigned number) const;

  llvm::StringRef text_;
  std::string fileName_;
  std::vector<Token> tokens_;
  std::vector<size_t> lineStarts_;
  size_t pos_ = 0;
  std::vector<Diagnostic> diagnostics_;
};

} // namespace fusor::frontend
