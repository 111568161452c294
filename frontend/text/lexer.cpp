#include "frontend/text/lexer.h"
#include "llvm/ADT/StringExtras.h"

namespace fusor::frontend {
namespace {

bool startsWord(char c) { return llvm::isAlpha(c) || c == '_'; }
bool continuesWord(char c) { return llvm::isAlnum(c) || c == '_'; }

class Lexer {
public:
  explicit Lexer(llvm::StringRef text) : text_(text) {}

  std::vector<Token> run() {
    std::vector<Token> tokens;
    do {
      skipBlanks();
      tokens.push_back(next());
    } while (!tokens.back().is(TokenKind::end));
    return tokens;
  }

private:
  char at(size_t i) const { return i < text_.size() ? text_[i] : '\0'; }
  bool inside(size_t i) const { return i < text_.size(); }

  void skipBlanks() {
    while (inside(pos_)) {
      char c = text_[pos_];
      if (c == '\n') {
        ++pos_, ++line_, lineStart_ = pos_;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++pos_;
      } else if (c == '/' && at(pos_ + 1) == '/') {
        while (inside(pos_) && text_[pos_] != '\n') ++pos_;
      } else {
        return;
      }
    }
  }

  Token make(TokenKind kind, size_t length, const char *problem = nullptr) {
    Token token{kind, text_.substr(pos_, length), line_, static_cast<unsigned>(pos_ - lineStart_ + 1), problem};
    pos_ += length;
    return token;
  }

  Token next() {
    if (!inside(pos_)) return make(TokenKind::end, 0);
    char c = text_[pos_];
    if (startsWord(c)) return make(TokenKind::word, spanWord());
    if (llvm::isDigit(c)) return number();
    if (c == '"') return string(TokenKind::string, 0);
    if (c == '%' || c == '@') return name(c == '%' ? TokenKind::value : TokenKind::persistent);
    if (c == '-' && at(pos_ + 1) == '>') return make(TokenKind::arrow, 2);
    if (c == '.' && at(pos_ + 1) == '.') return make(TokenKind::dotDot, 2);
    static constexpr llvm::StringLiteral signs = "(){}[],:=*+-";
    static constexpr TokenKind kinds[] = {TokenKind::leftParen,  TokenKind::rightParen,  TokenKind::leftBrace,
                                          TokenKind::rightBrace, TokenKind::leftBracket, TokenKind::rightBracket,
                                          TokenKind::comma,      TokenKind::colon,       TokenKind::equals,
                                          TokenKind::star,       TokenKind::plus,        TokenKind::minus};
    size_t sign = signs.find(c);
    if (sign != llvm::StringRef::npos) return make(kinds[sign], 1);
    return make(TokenKind::invalid, 1, c == '\0' ? "a NUL byte" : "a character that has no meaning here");
  }

  size_t spanWord() const {
    size_t end = pos_;
    while (inside(end) && continuesWord(text_[end])) ++end;
    return end - pos_;
  }

  size_t spanDigits(size_t from) const {
    while (llvm::isDigit(at(from))) ++from;
    return from;
  }

  // 12, 0.5, 1e-05; in 1..64 the dots are not the number's.
  Token number() {
    size_t end = spanDigits(pos_);
    bool real = false;
    if (at(end) == '.' && llvm::isDigit(at(end + 1))) real = true, end = spanDigits(end + 1);
    if (at(end) == 'e' || at(end) == 'E') {
      size_t digits = end + 1 + (at(end + 1) == '-' || at(end + 1) == '+');
      if (llvm::isDigit(at(digits))) real = true, end = spanDigits(digits);
    }
    return make(real ? TokenKind::real : TokenKind::integer, end - pos_);
  }

  // `skip` bytes of sigil, then "...".
  Token string(TokenKind kind, size_t skip) {
    size_t end = pos_ + skip + 1;
    const char *problem = nullptr;
    while (inside(end) && text_[end] != '"' && text_[end] != '\n') {
      if (text_[end] == '\\') {
        char escape = at(++end);
        if (escape == 'x' && llvm::isHexDigit(at(end + 1)) && llvm::isHexDigit(at(end + 2)))
          end += 2;
        else if (!llvm::StringRef("\"\\nt").contains(escape))
          problem = "a string with an unknown escape; there are \\\" \\\\ \\n \\t and \\xHH";
        if (!inside(end) || text_[end] == '\n') break;
      }
      ++end;
    }
    if (at(end) != '"' || !inside(end))
      return make(TokenKind::invalid, end - pos_, "a string that is not closed on its line");
    return make(problem ? TokenKind::invalid : kind, end + 1 - pos_, problem);
  }

  Token name(TokenKind kind) {
    if (at(pos_ + 1) == '"') return string(kind, 1);
    size_t end = pos_ + 1;
    if (kind == TokenKind::value && llvm::isDigit(at(end))) return make(kind, spanDigits(end) - pos_);
    if (!startsWord(at(end)))
      return make(TokenKind::invalid, 1, "a name that is missing or needs quotes, as in @\"0 weird\"");
    while (inside(end) && (continuesWord(text_[end]) || text_[end] == '.' || text_[end] == '$' || text_[end] == '-')) {
      if (text_[end] == '-' && at(end + 1) == '>') break;
      ++end;
    }
    return make(kind, end - pos_);
  }

  llvm::StringRef text_;
  size_t pos_ = 0, lineStart_ = 0;
  unsigned line_ = 1;
};

std::string decoded(llvm::StringRef inner) {
  std::string out;
  for (size_t i = 0; i < inner.size(); ++i) {
    if (inner[i] != '\\') {
      out += inner[i];
      continue;
    }
    char escape = inner[++i];
    if (escape == 'x') {
      out += static_cast<char>(llvm::hexFromNibbles(inner[i + 1], inner[i + 2]));
      i += 2;
    } else {
      out += escape == 'n' ? '\n' : escape == 't' ? '\t' : escape;
    }
  }
  return out;
}

} // namespace

bool Token::isNumbered() const { return kind == TokenKind::value && text.size() > 1 && llvm::isDigit(text[1]); }

std::string Token::name() const {
  llvm::StringRef inner = text;
  if (kind == TokenKind::value || kind == TokenKind::persistent) inner = inner.drop_front();
  if (!inner.startswith("\"")) return inner.str();
  return decoded(inner.drop_front().drop_back());
}

std::vector<Token> tokenize(llvm::StringRef text) { return Lexer(text).run(); }

} // namespace fusor::frontend
