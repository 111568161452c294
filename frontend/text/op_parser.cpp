// "%q, %a = quantize %x, @scale {contract = -1} : f8e4m3[B, 256] per tensor, f32[]"
#include "frontend/text/function_parser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace fusor::frontend {

bool FunctionParser::opLine(Scope &scope, OpText &text) {
  if (!operands(scope, text)) return false;
  auto attrs = parseAttrs(cursor_, types_, *text.def);
  if (!attrs) return false;
  text.attrs = std::move(*attrs);
  text.hasTypes = cursor_.accept(TokenKind::colon);
  if (text.hasTypes && !typeList(text.types)) return false;
  if (!cursor_.expectStatementEnd() || text.isUnknown) return false;

  llvm::SmallVector<ir::Value, 4> values;
  for (const Operand &operand : text.operands) {
    values.push_back(operand.number ? scalar(scope, text, operand) : operand.value);
    if (operand.present && !values.back()) return false;
  }
  ir::Builder builder(scope.block());
  builder.setLocation(cursor_.location(text.name));
  auto op = builder.create(text.def->name, values, text.attrs.attrs);
  if (!op) {
    reportInvalid(scope, text, llvm::toString(op.takeError()));
    return false;
  }
  return checkTypes(text, (*op)->results()) && defineResults(scope, text, **op);
}

bool FunctionParser::operands(Scope &scope, OpText &text) {
  size_t fixed = text.def->operands.size() - text.def->isVariadic();
  text.operands.resize(fixed);
  unsigned position = 0;
  if (cursor_.atStatementEnd() || cursor_.at(TokenKind::leftBrace) || cursor_.at(TokenKind::colon)) return true;
  do {
    if (!operand(scope, text, position)) return false;
  } while (cursor_.accept(TokenKind::comma));
  return true;
}

bool FunctionParser::operand(Scope &scope, OpText &text, unsigned &position) {
  Operand *slot;
  if (cursor_.at(TokenKind::word) && cursor_.peek(1).is(TokenKind::equals)) {
    Token name = cursor_.next();
    cursor_.next();
    slot = slotByName(text, name);
  } else {
    slot = slotByPosition(text, cursor_.peek(), position);
  }
  if (!slot) return false;
  slot->present = true;
  slot->token = cursor_.peek();
  const Token &token = slot->token;
  if (token.is(TokenKind::minus) || token.is(TokenKind::integer) || token.is(TokenKind::real) || token.isWord("inf") ||
      token.isWord("nan")) {
    slot->number = types_.real("a number");
    return slot->number.has_value();
  }
  auto use = value(scope);
  if (!use) return false;
  slot->value = use->value;
  if (!use->value) text.isUnknown = true;
  return true;
}

// bias = %b
FunctionParser::Operand *FunctionParser::slotByName(OpText &text, const Token &name) {
  const auto &specs = text.def->operands;
  auto spec = llvm::find_if(specs, [&](const ir::OperandSpec &s) { return s.name == name.text && !s.variadic; });
  if (spec == specs.end()) {
    std::vector<std::string> known;
    for (const ir::OperandSpec &s : specs) known.push_back(s.name);
    auto &error =
        cursor_.error(name, llvm::formatv("'{0}' has no operand called '{1}'", text.def->name, name.text).str());
    if (auto close = nearest(name.text, known)) error.hint = llvm::formatv("did you mean '{0}'?", *close).str();
    return nullptr;
  }
  Operand &slot = text.operands[spec - specs.begin()];
  if (!slot.present) return &slot;
  cursor_.error(name, llvm::formatv("operand '{0}' is given twice", name.text).str());
  return nullptr;
}

// The required operands in order, then the variadic ones.
FunctionParser::Operand *FunctionParser::slotByPosition(OpText &text, const Token &at, unsigned &position) {
  const auto &specs = text.def->operands;
  size_t fixed = specs.size() - text.def->isVariadic();
  while (position < fixed && (specs[position].optional || text.operands[position].present)) ++position;
  if (position < fixed) return &text.operands[position];
  if (text.def->isVariadic()) return &text.operands.emplace_back();
  auto &error =
      cursor_.error(at, llvm::formatv("'{0}' takes {1} operands", text.def->name, text.def->requiredOperands()).str());
  auto optional = llvm::find_if(specs, [](const ir::OperandSpec &s) { return s.optional; });
  if (optional != specs.end())
    error.hint = llvm::formatv("optional operands are given by name, as in {0} = %x", optional->name).str();
  return nullptr;
}

std::optional<Use> FunctionParser::value(Scope &scope) {
  if (cursor_.at(TokenKind::persistent)) return persistentValue(scope);
  Token token = cursor_.peek();
  if (!cursor_.expect(TokenKind::value, "a value such as %x or @w")) return std::nullopt;
  if (const Scope::Entry *entry = scope.find(token)) return Use{token, entry->value};
  auto &error = cursor_.error(token, llvm::formatv("{0} is not defined here", token.text).str());
  auto known = nearest(token.name(), scope.names());
  if (scope.isBody() && scope.outer()->find(token))
    error.hint = llvm::formatv("the body of a fusion sees only its arguments; add {0} to them", token.text).str();
  else if (module_.persistent(token.name()))
    error.hint = llvm::formatv("did you mean @{0}?", token.text.drop_front()).str();
  else if (known && !token.isNumbered())
    error.hint = llvm::formatv("did you mean %{0}?", *known).str();
  return std::nullopt;
}

std::optional<Use> FunctionParser::persistentValue(Scope &scope) {
  Token token = cursor_.next();
  std::string name = token.name();
  if (!module_.persistent(name)) {
    std::vector<std::string> known;
    for (const auto &persistent : module_.persistents()) known.push_back(persistent->name);
    auto &error = cursor_.error(token, llvm::formatv("{0} is not declared", token.text).str());
    if (auto close = nearest(name, known))
      error.hint = llvm::formatv("did you mean @{0}?", *close).str();
    else
      error.hint = llvm::formatv("declare it above the function, as in param {0} : f32[4]", token.text).str();
    return std::nullopt;
  }
  if (scope.isBody()) {
    auto &error = cursor_.error(token, llvm::formatv("{0} is not defined here", token.text).str());
    error.hint = llvm::formatv("the body of a fusion sees only its arguments; add {0} to them", token.text).str();
    return std::nullopt;
  }
  return Use{token, function_->read(name)};
}

// A number written as an operand is a constant of the dtype of the operand beside it.
ir::Value FunctionParser::scalar(Scope &scope, OpText &text, const Operand &operand) {
  const Operand *beside = nullptr;
  for (unsigned i = 0; i < text.operands.size(); ++i)
    if (text.operands[i].value && (!beside || !llvm::is_contained(text.def->untypedOperands, i))) {
      beside = &text.operands[i];
      if (!llvm::is_contained(text.def->untypedOperands, i)) break;
    }
  if (!beside) {
    auto &error = cursor_.error(operand.token, "a number takes the dtype of another operand, and there is none");
    error.hint = "write a constant: %c = constant {value = 1.0, dtype = bf16}";
    return {};
  }
  ir::DType dtype = beside->value.dtype();
  if (!ir::isFloat(dtype) && ir::roundTo(dtype, *operand.number) != *operand.number) {
    auto &error = cursor_.error(
        operand.token,
        llvm::formatv("the number is no value of {0}, the dtype of {1}", ir::name(dtype), beside->token.text).str());
    noteDeclaration(scope, error, beside->value);
    return {};
  }
  ir::Builder builder(scope.block());
  builder.setLocation(cursor_.location(operand.token));
  return builder.constant(*operand.number, dtype);
}

// What the op table says against the op, at the attribute it speaks of or at the op.
void FunctionParser::reportInvalid(Scope &scope, const OpText &text, const std::string &message) {
  Token at = text.name;
  for (const auto &entry : text.attrs.tokens)
    if (llvm::StringRef(message).contains(("attribute '" + entry.getKey() + "'").str())) at = entry.second;
  auto &error = cursor_.error(at, message);
  // The other party: the last operand whose type the message gives.
  for (const Operand &operand : llvm::reverse(text.operands))
    if (operand.value && llvm::StringRef(message).contains(operand.value.type().str()))
      return noteDeclaration(scope, error, operand.value);
}

void FunctionParser::noteDeclaration(const Scope &scope, Diagnostic &diagnostic, ir::Value value) {
  if (value.isPersistent()) {
    const ir::Persistent *persistent = module_.persistent(value.name());
    diagnostic.notes.push_back({persistent->location, llvm::formatv("@{0} is declared here", persistent->name).str()});
  } else if (const Token *token = scope.declaration(value)) {
    diagnostic.notes.push_back({cursor_.location(*token), llvm::formatv("{0} is declared here", token->text).str()});
  }
}

bool FunctionParser::typeList(std::vector<WrittenType> &types) {
  do {
    Token token = cursor_.peek();
    auto type = types_.type();
    if (!type) return false;
    types.push_back({token, std::move(*type)});
  } while (cursor_.accept(TokenKind::comma));
  return true;
}

bool FunctionParser::checkTypes(const OpText &text, llvm::ArrayRef<ir::Value> results) {
  for (ir::Value result : results)
    if (types_.isTooLarge(result.type()) || result.rank() > kMostDims) {
      cursor_.error(text.name,
                    llvm::formatv("'{0}' gives {1}, which is too large", text.def->name, result.type().str()).str());
      return false;
    }
  if (!text.hasTypes) return true;
  if (text.types.size() != results.size()) {
    cursor_.error(text.types.front().token, llvm::formatv("'{0}' gives {1} results, {2} types are written",
                                                          text.def->name, results.size(), text.types.size())
                                                .str());
    return false;
  }
  for (unsigned i = 0; i < results.size(); ++i) {
    if (text.types[i].type == results[i].type()) continue;
    auto &error = cursor_.error(text.types[i].token, llvm::formatv("'{0}' gives {1} here, found {2}", text.def->name,
                                                                   results[i].type().str(), text.types[i].type.str())
                                                         .str());
    error.hint = "types of results may be left out";
    return false;
  }
  return true;
}

bool FunctionParser::defineResults(Scope &scope, OpText &text, ir::Op &op) {
  if (text.results.size() != op.resultCount()) {
    cursor_.error(
        text.results.empty() ? text.name : text.results.front(),
        llvm::formatv("'{0}' gives {1} results, {2} are named", text.def->name, op.resultCount(), text.results.size())
            .str());
    return false;
  }
  for (unsigned i = 0; i < op.resultCount(); ++i) {
    const Token &token = text.results[i];
    if (!define(scope, token, op.result(i))) return false;
    if (!token.isNumbered()) op.result(i).setName(token.name());
  }
  return true;
}

} // namespace fusor::frontend
