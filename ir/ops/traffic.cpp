#include "ir/ops/traffic.h"
#include "ir/ops/op_def.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::ir {

Dim bytesOf(Value value) { return value.type().elements() * Dim(byteSize(value.dtype())); }

Dim bytesRead(const Op &op, Value operand) {
  bool isPart = op.is("slice") || op.is("split") || op.is("gather") || op.is("embedding");
  if (!isPart || op.operand(0u) != operand) return bytesOf(operand);
  Dim bytes(0);
  for (Value result : op.results())
    if (op.resultCount() == 1 || !result.unused()) bytes = bytes + bytesOf(result);
  return bytes;
}

Dim bytesRead(Value argument) {
  Dim all = bytesOf(argument), parts(0);
  for (const Op *user : argument.users()) {
    Dim part = bytesRead(*user, argument);
    if (part == all) return all;
    parts = parts + part;
  }
  return argument.unused() ? all : parts;
}

int64_t movedBytes(const Op &op, const SymbolValues &symbols) {
  auto size = [&](const Dim &dim) { return dim.evaluate(symbols).value_or(0); };
  int64_t bytes = 0;
  llvm::DenseSet<ValueDef *> seen;
  for (unsigned i = 0; i < op.operands().size(); ++i) {
    Value operand = op.operand(i);
    if (!operand || !seen.insert(operand.def()).second) continue;
    bool isInside = op.body() && i < op.body()->arguments().size();
    Dim read = isInside ? bytesRead(op.body()->argument(i)) : bytesRead(op, operand);
    bytes += std::min(size(read), size(bytesOf(operand))); // rows that are looked up twice come from a cache
  }
  for (Value result : op.results()) bytes += size(bytesOf(result));
  return bytes;
}

} // namespace fusor::ir
