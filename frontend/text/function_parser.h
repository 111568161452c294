// `func @forward(%x: bf16[B, 256]) -> bf16[B, 256] { ... }`: scopes, ops, fusions with bodies, return.
//
// An error costs its own line: the values the line would define are remembered as unknown, what uses them is skipped in
// silence, and reading goes on behind the line. function_parser.cpp has blocks and terminators, op_parser.cpp single
// ops, fusion_parser.cpp fusions.
#pragma once
#include "frontend/text/attr_parser.h"
#include "frontend/text/scope.h"
#include "ir/graph/builder.h"

namespace fusor::frontend {

struct WrittenType {
  Token token;
  ir::TensorType type;
};

class FunctionParser {
public:
  FunctionParser(Cursor &cursor, TypeParser &types, ir::Module &module)
      : cursor_(cursor), types_(types), module_(module) {}

  /// From the word `func` on. False where the rest of the function is to be skipped.
  bool parse();

private:
  struct Operand {
    Token token;
    ir::Value value;              // null where it is a number, absent, or defined by a line with an error
    std::optional<double> number; // a scalar written in place: mul %x, 0.5
    bool present = false;
  };
  // What one line says, before it becomes an op. A line `isUnknown` when it uses values whose own lines had errors.
  struct OpText {
    llvm::SmallVector<Token, 2> results;
    Token name;
    const ir::OpDef *def = nullptr;
    llvm::SmallVector<Operand, 4> operands; // slots of the table, then the variadic ones
    ParsedAttrs attrs;
    bool hasTypes = false;
    std::vector<WrittenType> types;
    bool isUnknown = false;
  };

  // Each returns false where the statement (or block) is to be skipped, having reported why.
  bool functionSymbols();
  bool arguments(Scope &scope);
  bool block(Scope &scope);
  void statement(Scope &scope);
  bool line(Scope &scope, OpText &text);
  bool returnLine(Scope &scope, OpText &text);
  bool returnEntry(Scope &scope, OpText &text, llvm::SmallVectorImpl<ir::ReturnEntry> &entries);
  bool checkReturn(const OpText &text, llvm::ArrayRef<ir::ReturnEntry> entries);
  bool fusionLine(Scope &scope, OpText &text);
  bool fusionArgument(Scope &outer, Scope &inner, OpText &text, ir::Op &op);
  bool opLine(Scope &scope, OpText &text);
  bool operands(Scope &scope, OpText &text);
  bool operand(Scope &scope, OpText &text, unsigned &position);
  Operand *slotByName(OpText &text, const Token &name);
  Operand *slotByPosition(OpText &text, const Token &at, unsigned &position);
  std::optional<Use> value(Scope &scope);
  std::optional<Use> persistentValue(Scope &scope);
  ir::Value scalar(Scope &scope, OpText &text, const Operand &operand);
  void reportInvalid(Scope &scope, const OpText &text, const std::string &message);
  void noteDeclaration(const Scope &scope, Diagnostic &diagnostic, ir::Value value);
  bool typeList(std::vector<WrittenType> &types);
  bool checkTypes(const OpText &text, llvm::ArrayRef<ir::Value> results);
  bool defineResults(Scope &scope, OpText &text, ir::Op &op);
  bool define(Scope &scope, const Token &token, ir::Value value);

  Cursor &cursor_;
  TypeParser &types_;
  ir::Module &module_;
  ir::Function *function_ = nullptr;
  bool hasResultTypes_ = false; // "->" is there
  std::vector<WrittenType> resultTypes_;
};

} // namespace fusor::frontend
