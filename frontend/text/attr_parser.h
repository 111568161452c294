// The attributes of an op: `{form = tanh, dims = [0, 1]}`. The op table says which exist and of which kind.
#pragma once
#include "frontend/text/type_parser.h"
#include "ir/ops/op_def.h"
#include "llvm/ADT/StringMap.h"

namespace fusor::frontend {

struct ParsedAttrs {
  ir::Attrs attrs;
  llvm::StringMap<Token> tokens; // the name of each, for errors about it
};

/// Nothing where the next token is no '{'. Absent after having reported an error.
std::optional<ParsedAttrs> parseAttrs(Cursor &cursor, TypeParser &types, const ir::OpDef &def);

} // namespace fusor::frontend
