#include "passes/recompute/recompute.h"
#include "ir/graph/builder.h"
#include "ir/ops/op_def.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"
#include <optional>

namespace fusor::passes {

using namespace ir;

namespace {

using Ops = llvm::SmallVector<Op *, 4>;
using OpSet = llvm::SmallPtrSet<const Op *, 32>;

// Everything that depends on `op`, itself not included.
OpSet dependents(Op &op) {
  OpSet found;
  llvm::SmallVector<Op *, 16> open = {&op};
  while (!open.empty())
    for (Value result : open.pop_back_val()->results())
      for (Op *user : result.users())
        if (found.insert(user).second) open.push_back(user);
  return found;
}

// How an op's first result is computed again.
struct Formula {
  llvm::StringRef op;
  llvm::SmallVector<Value, 5> operands;
  Attrs attrs;
};

std::optional<Formula> cheapFormula(const Op &op) {
  if (op.resultCount() == 0 || op.result().rank() == 0) return std::nullopt;
  if (op.def().isElementwise()) return Formula{op.name(), llvm::to_vector<5>(op.operands()), op.attrs()};
  bool isLayer = op.is("layer_norm");
  if (!isLayer && !op.is("rms_norm")) return std::nullopt;
  Attrs attrs;
  if (const AttrValue *out = op.attrs().find("out")) attrs.set("out", *out);
  Value mean = isLayer ? op.result(1) : Value(), rstd = op.result(isLayer ? 2 : 1);
  return Formula{"normalize", {op.operand(0u), rstd, mean, op.operand(1), op.operand(2)}, attrs};
}

// Has its operands at hand element by element: a value of the same shape costs it one more write.
bool hasElementsAtHand(const Op &op) {
  return op.def().isElementwise() || op.is("layer_norm_grad") || op.is("rms_norm_grad");
}

Ops distinctUsers(Value value) {
  Ops users;
  for (Op *user : value.users())
    if (!llvm::is_contained(users, user)) users.push_back(user);
  return users;
}

struct Again {
  Ops readers; // that the value would wait for
  Op *beside;  // reads what the value is computed from, later than the value's first readers
};

// Which readers of `value` to serve by a copy, if any.
std::optional<Again> findAgain(Value value, const Formula &formula) {
  Ops readers = distinctUsers(value);
  llvm::SmallVector<OpSet, 4> after; // each of them
  OpSet late;                        // depends on one of the readers
  for (Op *reader : readers) {
    if (reader->def().isTerminator) return std::nullopt; // the caller gets it: it has to lie there
    after.push_back(dependents(*reader));
    for (const Op *dependent : after.back()) late.insert(dependent);
  }
  llvm::SmallVector<Value, 5> computed;
  for (Value operand : formula.operands)
    if (operand && operand.op() && operand.rank() > 0) computed.push_back(operand);
  if (computed.empty()) return std::nullopt;
  for (Op *beside : distinctUsers(computed.front())) {
    bool readsAll = llvm::all_of(computed, [&](Value v) { return llvm::is_contained(beside->operands(), v); });
    if (!readsAll || !hasElementsAtHand(*beside) || beside == value.op() || !late.contains(beside) ||
        beside->result().shape() != value.shape())
      continue;
    Again again{{}, beside};
    for (unsigned i = 0; i < readers.size(); ++i) // those that `beside` needs have read the value by then
      if (late.contains(readers[i]) && readers[i] != beside && !after[i].contains(beside))
        again.readers.push_back(readers[i]);
    if (!again.readers.empty()) return again;
  }
  return std::nullopt;
}

// In front of whichever comes first of `again`'s ops.
Value insertCopy(const Op &op, const Formula &formula, const Again &again,
                 const llvm::DenseMap<const Op *, int> &position) {
  Op *first = again.beside;
  for (Op *reader : again.readers)
    if (position.lookup(reader) < position.lookup(first)) first = reader;
  Builder builder(*first);
  builder.setLocation(op.location());
  Value copy = builder.op(formula.op, formula.operands, formula.attrs);
  copy.setName(op.result().name());
  return copy;
}

} // namespace

llvm::Expected<bool> recompute(Module &module, PassContext &context) {
  if (!context.options().recompute) return false;
  bool changed = false;
  for (const auto &function : module.functions()) {
    auto ops = function->block().opPointers();
    llvm::DenseMap<const Op *, int> position;
    for (int i = 0; Op * op : ops) position[op] = i++;
    for (Op *op : ops) {
      auto formula = cheapFormula(*op);
      if (!formula) continue;
      auto again = findAgain(op->result(), *formula);
      if (!again || !context.spend("recompute")) continue;
      Value copy = insertCopy(*op, *formula, *again, position);
      for (Op *reader : again->readers)
        for (unsigned i = 0; i < reader->operands().size(); ++i)
          if (reader->operand(i) == op->result()) reader->setOperand(i, copy);
      auto names = llvm::map_range(again->readers, [](Op *reader) { return reader->name(); });
      context.record(Decision::Kind::taken, "recompute", *op,
                     "computed again for " + llvm::join(names, ", ") + ", beside " + again->beside->name().str());
      changed = true;
    }
  }
  return changed;
}

} // namespace fusor::passes
