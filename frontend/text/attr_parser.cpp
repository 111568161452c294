#include "frontend/text/attr_parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace fusor::frontend {
namespace {

class AttrParser {
public:
  AttrParser(Cursor &cursor, TypeParser &types) : cursor_(cursor), types_(types) {}

  std::optional<ir::AttrValue> value(const ir::AttrSpec &spec) {
    switch (spec.kind) {
    case ir::AttrKind::boolean: return boolean();
    case ir::AttrKind::integer: return wrap(types_.integer("an integer"));
    case ir::AttrKind::real: return wrap(types_.real("a number"));
    case ir::AttrKind::word: return wrap(word());
    case ir::AttrKind::integers: return wrap(list<int64_t>([&] { return types_.integer("an integer"); }));
    case ir::AttrKind::words: return wrap(list<std::string>([&] { return word(); }));
    case ir::AttrKind::dtype: return wrap(types_.dtype());
    case ir::AttrKind::shape: return wrap(types_.shape());
    }
    return std::nullopt;
  }

private:
  template <typename T> static std::optional<ir::AttrValue> wrap(std::optional<T> value) {
    return value ? std::optional<ir::AttrValue>(std::move(*value)) : std::nullopt;
  }

  std::optional<ir::AttrValue> boolean() {
    bool isTrue = cursor_.atWord("true");
    if (!isTrue && !cursor_.atWord("false")) {
      cursor_.expected("true or false");
      return std::nullopt;
    }
    cursor_.next();
    return ir::AttrValue(isTrue);
  }

  std::optional<std::string> word() {
    if (cursor_.at(TokenKind::word)) return cursor_.next().text.str();
    if (cursor_.at(TokenKind::string)) return cursor_.next().name();
    cursor_.expected("a word or a string");
    return std::nullopt;
  }

  template <typename T, typename F> std::optional<std::vector<T>> list(F element) {
    std::vector<T> values;
    if (!cursor_.expect(TokenKind::leftBracket, "a list in [ ]")) return std::nullopt;
    if (!cursor_.at(TokenKind::rightBracket)) do {
        auto next = element();
        if (!next) return std::nullopt;
        values.push_back(std::move(*next));
      } while (cursor_.accept(TokenKind::comma));
    if (!cursor_.expect(TokenKind::rightBracket, "',' or ']' in a list")) return std::nullopt;
    return values;
  }

  Cursor &cursor_;
  TypeParser &types_;
};

void reportUnknown(Cursor &cursor, const ir::OpDef &def, const Token &name) {
  std::vector<std::string> known;
  for (const ir::AttrSpec &spec : def.attrs) known.push_back(spec.name);
  auto &error = cursor.error(name, llvm::formatv("'{0}' has no attribute '{1}'", def.name, name.text).str());
  if (auto close = nearest(name.text, known))
    error.hint = llvm::formatv("did you mean '{0}'?", *close).str();
  else
    error.hint = known.empty() ? "it has none" : "it has " + llvm::join(known, ", ");
}

} // namespace

std::optional<ParsedAttrs> parseAttrs(Cursor &cursor, TypeParser &types, const ir::OpDef &def) {
  ParsedAttrs parsed;
  // "{ word =" begins attributes, any other "{" a body.
  if (!cursor.at(TokenKind::leftBrace)) return parsed;
  bool body = !(cursor.peek(1).is(TokenKind::word) && cursor.peek(2).is(TokenKind::equals));
  if (body && def.name == "fusion") return parsed;
  cursor.next();
  AttrParser values(cursor, types);
  do {
    Token name = cursor.peek();
    if (!cursor.expect(TokenKind::word, "the name of an attribute")) return std::nullopt;
    const ir::AttrSpec *spec = def.attr(name.text);
    if (!spec) {
      reportUnknown(cursor, def, name);
      return std::nullopt;
    }
    if (!parsed.tokens.try_emplace(name.text, name).second) {
      cursor.error(name, llvm::formatv("attribute '{0}' is given twice", name.text).str());
      return std::nullopt;
    }
    if (!cursor.expect(TokenKind::equals, "'='")) return std::nullopt;
    auto value = values.value(*spec);
    if (!value) return std::nullopt;
    parsed.attrs.set(name.text, std::move(*value));
  } while (cursor.accept(TokenKind::comma));
  if (!cursor.expect(TokenKind::rightBrace, "',' or '}' after an attribute")) return std::nullopt;
  return parsed;
}

} // namespace fusor::frontend
