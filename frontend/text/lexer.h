// IR text to tokens. Every byte sequence gives tokens: what is no token of the language is an `invalid` one that says
// why.
#pragma once
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace fusor::frontend {

enum class TokenKind : uint8_t {
  end,
  invalid,
  word,       // add, bf16, B
  integer,    // 256
  real,       // 0.5, 1e-05
  string,     // "abc"
  value,      // %h, %0, %"weird name"
  persistent, // @w, @"weird name"
  leftParen,
  rightParen,
  leftBrace,
  rightBrace,
  leftBracket,
  rightBracket,
  comma,
  colon,
  equals,
  arrow,  // ->
  dotDot, // ..
  star,
  plus,
  minus,
};

struct Token {
  TokenKind kind = TokenKind::end;
  llvm::StringRef text; // the bytes of the file, sigil and quotes included
  unsigned line = 1, column = 1;
  const char *problem = nullptr; // of an invalid token

  bool is(TokenKind k) const { return kind == k; }
  bool isWord(llvm::StringRef word) const { return kind == TokenKind::word && text == word; }
  /// %0: a value without a name of its own.
  bool isNumbered() const;
  /// Of a value, persistent or string: without sigil and quotes, escapes decoded.
  std::string name() const;
};

/// All tokens of `text`, the last of kind `end`. Comments and white space are skipped. The tokens point into `text`.
std::vector<Token> tokenize(llvm::StringRef text);

} // namespace fusor::frontend
