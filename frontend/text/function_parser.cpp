#include "frontend/text/function_parser.h"
#include "ir/graph/names.h"
#include "llvm/Support/FormatVariadic.h"

namespace fusor::frontend {

bool FunctionParser::parse() {
  cursor_.next(); // func
  Token name = cursor_.peek();
  if (!cursor_.expect(TokenKind::persistent, "the name of the function, as in @forward")) return false;
  if (module_.function(name.name())) {
    cursor_.error(name, llvm::formatv("function {0} is already defined", name.text).str());
    return false;
  }
  if (name.name().empty()) {
    cursor_.error(name, "a function needs a name");
    return false;
  }
  if (!functionSymbols()) return false;
  function_ = &module_.addFunction(name.name());
  Scope scope(function_->block());
  if (!cursor_.expect(TokenKind::leftParen, "'(' and the arguments") || !arguments(scope)) return false;
  hasResultTypes_ = cursor_.accept(TokenKind::arrow);
  if (hasResultTypes_ && !typeList(resultTypes_)) return false;
  if (cursor_.acceptWord("where")) do { // read by functionSymbols()
      if (!types_.symbolRange()) return false;
    } while (cursor_.accept(TokenKind::comma));
  return cursor_.expect(TokenKind::leftBrace, "'{' and the ops of the function") && block(scope);
}

// "where B in 1..64" stands behind the types that use B, so it is read first.
bool FunctionParser::functionSymbols() {
  size_t here = cursor_.position();
  while (!cursor_.at(TokenKind::end) && !cursor_.at(TokenKind::leftBrace) && !cursor_.atWord("where")) cursor_.next();
  if (cursor_.acceptWord("where")) do {
      if (!types_.symbolRange()) return false;
    } while (cursor_.accept(TokenKind::comma));
  cursor_.rewind(here);
  return true;
}

bool FunctionParser::arguments(Scope &scope) {
  if (!cursor_.at(TokenKind::rightParen)) do {
      Token name = cursor_.peek();
      if (!cursor_.expect(TokenKind::value, "an argument, as in %x: f32[4]") ||
          !cursor_.expect(TokenKind::colon, "':' and a type"))
        return false;
      auto type = types_.type();
      if (!type) return false;
      ir::Value argument = scope.block().addArgument(std::move(*type), name.isNumbered() ? "" : name.name());
      if (!define(scope, name, argument)) return false;
    } while (cursor_.accept(TokenKind::comma));
  return cursor_.expect(TokenKind::rightParen, "',' or ')' after an argument");
}

// The ops behind "{" and the "}".
bool FunctionParser::block(Scope &scope) {
  const char *terminator = scope.isBody() ? "yield" : "return";
  while (!cursor_.at(TokenKind::rightBrace)) {
    if (cursor_.tooManyErrors()) return false;
    if (cursor_.at(TokenKind::end)) {
      cursor_.expected("'}'");
      return false;
    }
    if (scope.ended) {
      cursor_.error(cursor_.peek(), llvm::formatv("no op may follow '{0}'", terminator).str());
      return false;
    }
    statement(scope);
  }
  if (!scope.ended)
    cursor_.error(cursor_.peek(), llvm::formatv("{0} must end with '{1}'",
                                                scope.isBody() ? "the body of a fusion" : "a function", terminator)
                                      .str());
  cursor_.next();
  return scope.ended;
}

void FunctionParser::statement(Scope &scope) {
  size_t start = cursor_.position();
  OpText text;
  if (line(scope, text)) return;
  for (const Token &result : text.results) scope.define(result, ir::Value());
  cursor_.skipStatement(start);
}

// "[%a, %b =] op ..."
bool FunctionParser::line(Scope &scope, OpText &text) {
  if (cursor_.at(TokenKind::value)) {
    do {
      text.results.push_back(cursor_.peek());
      if (!cursor_.expect(TokenKind::value, "the name of a result, as in %y")) return text.results.pop_back(), false;
    } while (cursor_.accept(TokenKind::comma));
    if (!cursor_.expect(TokenKind::equals, "'=' and an op")) return false;
  }
  text.name = cursor_.peek();
  if (text.results.empty() && !cursor_.at(TokenKind::word))
    return cursor_.expectedHere("an op, '%name = op ...' or '}'"), false;
  if (!cursor_.expect(TokenKind::word, "an op")) return false;
  text.def = ir::findOp(text.name.text);
  if (!text.def) {
    std::vector<std::string> known;
    for (const ir::OpDef *def : ir::allOps()) known.push_back(def->name);
    auto &error = cursor_.error(text.name, llvm::formatv("there is no op called '{0}'", text.name.text).str());
    if (auto close = nearest(text.name.text, known))
      error.hint = llvm::formatv("did you mean '{0}'?", *close).str();
    else
      error.hint = "'fusor ops' lists all ops";
    return false;
  }
  if (text.def->isTerminator) {
    scope.ended = true; // even where it has an error: no second one for its absence
    if (text.def->name != (scope.isBody() ? "yield" : "return")) {
      cursor_.error(text.name,
                    scope.isBody() ? "the body of a fusion ends with 'yield'" : "a function ends with 'return'");
      return false;
    }
  }
  if (text.def->name == "return") return returnLine(scope, text);
  return text.def->name == "fusion" ? fusionLine(scope, text) : opLine(scope, text);
}

// "return %z, @w = %new, grad @v = %dv"
bool FunctionParser::returnLine(Scope &scope, OpText &text) {
  llvm::SmallVector<ir::ReturnEntry, 4> entries;
  if (!cursor_.atStatementEnd()) do {
      if (!returnEntry(scope, text, entries)) return false;
    } while (cursor_.accept(TokenKind::comma));
  if (!cursor_.expectStatementEnd()) return false;
  if (!text.results.empty()) {
    cursor_.error(text.results.front(), "'return' gives no results");
    return false;
  }
  if (text.isUnknown || !checkReturn(text, entries)) return false;
  function_->setReturns(entries, cursor_.location(text.name));
  return true;
}

bool FunctionParser::returnEntry(Scope &scope, OpText &text, llvm::SmallVectorImpl<ir::ReturnEntry> &entries) {
  ir::ReturnEntry entry{ir::ReturnKind::result, "", {}};
  if (cursor_.atWord("grad")) {
    cursor_.next();
    if (!cursor_.at(TokenKind::persistent))
      return cursor_.expected("the param this is the gradient of, as in grad @w = %dw"), false;
    entry.kind = ir::ReturnKind::gradient;
  } else if (cursor_.at(TokenKind::persistent) && cursor_.peek(1).is(TokenKind::equals)) {
    entry.kind = ir::ReturnKind::update;
  }
  if (entry.kind != ir::ReturnKind::result) {
    entry.name = cursor_.next().name();
    if (!cursor_.expect(TokenKind::equals, "'='")) return false;
  }
  auto use = value(scope);
  if (!use) return false;
  if (!use->value) text.isUnknown = true;
  entry.value = use->value;
  entries.push_back(std::move(entry));
  text.operands.push_back({use->token, use->value, std::nullopt, true});
  return true;
}

// The results against the types written behind "->".
bool FunctionParser::checkReturn(const OpText &text, llvm::ArrayRef<ir::ReturnEntry> entries) {
  if (!hasResultTypes_) return true; // left out: those of the values
  unsigned results = 0;
  for (unsigned i = 0; i < entries.size(); ++i) {
    if (entries[i].kind != ir::ReturnKind::result) continue;
    if (results < resultTypes_.size() && entries[i].value.type() != resultTypes_[results].type) {
      auto &error = cursor_.error(text.operands[i].token,
                                  llvm::formatv("result {0} must be {1}, is {2}", results,
                                                resultTypes_[results].type.str(), entries[i].value.type().str())
                                      .str());
      error.notes.push_back({cursor_.location(resultTypes_[results].token), "its type is declared here"});
      return false;
    }
    ++results;
  }
  if (results == resultTypes_.size()) return true;
  cursor_.error(text.name,
                llvm::formatv("the function gives {0} results, {1} are returned", resultTypes_.size(), results).str());
  return false;
}

bool FunctionParser::define(Scope &scope, const Token &token, ir::Value value) {
  const Scope::Entry *earlier = scope.define(token, value);
  if (!earlier) return true;
  auto &error = cursor_.error(token, llvm::formatv("{0} is already defined", token.text).str());
  error.notes.push_back(
      {cursor_.location(earlier->token), llvm::formatv("{0} is first defined here", token.text).str()});
  return false;
}

} // namespace fusor::frontend
