#include "passes/recompute/recompute.h"
#include "ir/graph/clone.h"
#include "ir/ops/op_def.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include <optional>

namespace fusor::passes {

using namespace ir;

namespace {

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

bool isCheap(const Op &op) { return op.def().isElementwise() && op.results().size() == 1 && op.result().rank() > 0; }

struct Again {
  Op *reader; // that the value would wait for
  Op *beside; // reads what the value is computed from, later than the value's first readers
};

class Readers {
public:
  explicit Readers(Block &block) {
    int position = 0;
    for (Op *op : block.opPointers()) position_[op] = position++;
  }

  // Which reader of `op` to serve by a copy, if any.
  std::optional<Again> find(Op &op) {
    llvm::SmallVector<Op *, 4> readers = distinct(op.result());
    llvm::erase_if(readers, [](Op *reader) { return reader->def().isTerminator; });
    llvm::SmallVector<OpSet, 4> after; // each of them
    OpSet late;                        // depends on one of the readers
    for (Op *reader : readers) {
      after.push_back(dependents(*reader));
      for (const Op *dependent : after.back()) late.insert(dependent);
    }
    for (unsigned i = 0; i < readers.size(); ++i)
      if (late.contains(readers[i]))
        if (Op *beside = readerOfOperands(op, late, after[i])) return Again{readers[i], beside};
    return std::nullopt;
  }

  Op *first(Op *a, Op *b) const { return position_.lookup(a) < position_.lookup(b) ? a : b; }

private:
  llvm::DenseMap<const Op *, int> position_;

  static llvm::SmallVector<Op *, 4> distinct(Value value) {
    llvm::SmallVector<Op *, 4> users;
    for (Op *user : value.users())
      if (!llvm::is_contained(users, user)) users.push_back(user);
    return users;
  }

  // An elementwise op of the same shape that reads every computed operand of `op` late, and not after the reader.
  static Op *readerOfOperands(Op &op, const OpSet &late, const OpSet &afterReader) {
    Op *beside = nullptr;
    for (Value operand : op.operands()) {
      if (!operand || !operand.op() || operand.rank() == 0) continue;
      Op *found = nullptr;
      for (Op *user : distinct(operand))
        if (user != &op && isCheap(*user) && late.contains(user) && !afterReader.contains(user) &&
            user->result().shape() == op.result().shape() && (!beside || user == beside))
          found = user;
      if (!found) return nullptr;
      beside = found;
    }
    return beside;
  }
};

} // namespace

llvm::Expected<bool> recompute(Module &module, PassContext &context) {
  if (!context.options().recompute) return false;
  bool changed = false;
  for (const auto &function : module.functions()) {
    Readers order(function->block());
    for (Op *op : function->block().opPointers()) {
      if (!isCheap(*op)) continue;
      auto again = order.find(*op);
      if (!again || !context.spend("recompute")) continue;
      ValueMap map;
      Op *copy = cloneInto(*op->block(), *op, map, order.first(again->reader, again->beside));
      for (unsigned i = 0; i < again->reader->operands().size(); ++i)
        if (again->reader->operand(i) == op->result()) again->reader->setOperand(i, copy->result());
      context.record(Decision::Kind::taken, "recompute", *op,
                     "computed again for " + again->reader->name().str() + ", beside " + again->beside->name().str());
      changed = true;
    }
  }
  return changed;
}

} // namespace fusor::passes
