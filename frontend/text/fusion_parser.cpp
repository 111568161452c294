// "%z = fusion @add_gelu(%h = %y, @b, %u) {kind = row} : bf16[B, 3072] { ...; yield %s }"
#include "frontend/text/function_parser.h"
#include "ir/graph/names.h"
#include "llvm/Support/FormatVariadic.h"

namespace fusor::frontend {
namespace {

constexpr unsigned kDeepestFusion = 16;

} // namespace

bool FunctionParser::fusionLine(Scope &scope, OpText &text) {
  if (scope.depth() >= kDeepestFusion) {
    cursor_.error(text.name, llvm::formatv("fusions are nested more than {0} deep", kDeepestFusion).str());
    return false;
  }
  ir::Op &op = *scope.block().insert(std::make_unique<ir::Op>(*text.def, llvm::ArrayRef<ir::Value>(),
                                                              llvm::ArrayRef<ir::TensorType>(), ir::Attrs(),
                                                              cursor_.location(text.name)));
  Scope body(op.makeBody(), &scope);
  std::optional<std::string> name;
  if (cursor_.at(TokenKind::persistent)) name = cursor_.next().name();
  if (!cursor_.expect(TokenKind::leftParen, "'(' and what the fusion reads")) return false;
  if (!cursor_.at(TokenKind::rightParen)) do {
      if (!fusionArgument(scope, body, text, op)) return false;
    } while (cursor_.accept(TokenKind::comma));
  if (!cursor_.expect(TokenKind::rightParen, "',' or ')' after an argument")) return false;

  auto attrs = parseAttrs(cursor_, types_, *text.def);
  if (!attrs) return false;
  text.attrs = std::move(*attrs);
  for (const ir::Attrs::Entry &entry : text.attrs.attrs.entries()) op.setAttr(entry.name, entry.value);
  if (name) op.setAttr("name", *name);
  if (auto types = ir::inferTypes(op.site()); !types) {
    reportInvalid(scope, text, llvm::toString(types.takeError()));
    return false;
  }
  text.hasTypes = cursor_.accept(TokenKind::colon);
  if (text.hasTypes && !typeList(text.types)) return false;
  if (!cursor_.expect(TokenKind::leftBrace, "'{' and the body of the fusion")) return false;
  if (text.isUnknown || !block(body)) return false;
  ir::Op *yield = body.block().terminator();
  if (!yield) return false; // it had an error
  for (ir::Value value : yield->operands()) op.addResult(value.type(), "");
  return cursor_.expectStatementEnd() && checkTypes(text, op.results()) && defineResults(scope, text, op);
}

// "%inner = %outer", "%x" for "%x = %x", "@fc1.bias" for "%bias = @fc1.bias".
bool FunctionParser::fusionArgument(Scope &outer, Scope &inner, OpText &text, ir::Op &op) {
  std::optional<Token> insideName;
  if (cursor_.at(TokenKind::value) && cursor_.peek(1).is(TokenKind::equals)) {
    insideName = cursor_.next();
    cursor_.next();
  }
  auto use = value(outer);
  if (!use) return false;
  if (!use->value) return text.isUnknown = true;
  op.addOperand(use->value);
  const Token &token = insideName ? *insideName : use->token;
  if (token.is(TokenKind::persistent)) {
    std::string base = ir::lastPart(token.name()).str(), unique = base;
    for (unsigned n = 1; inner.has(unique); ++n) unique = base + "." + std::to_string(n);
    return !inner.define(unique, token, inner.block().addArgument(use->value.type(), unique));
  }
  return define(inner, token, inner.block().addArgument(use->value.type(), token.isNumbered() ? "" : token.name()));
}

} // namespace fusor::frontend
