#include "passes/schedule/schedule.h"
#include "ir/ops/op_def.h"
#include "passes/memory/memory_plan.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include <set>

namespace fusor::passes {

using namespace ir;

namespace {

using Order = llvm::SmallVector<Op *, 0>;

// Greedy list scheduling over the block's ops; the terminator stays last.
class Scheduler {
public:
  Scheduler(const Block &block, const SymbolValues &symbols) : ops_(block.opPointers()), symbols_(symbols) {
    for (unsigned i = 0; i < ops_.size(); ++i) {
      position_[ops_[i]] = i;
      llvm::SmallPtrSet<Op *, 8> producers;
      for (Value operand : ops_[i]->operands()) {
        if (!operand) continue;
        if (operand.op()) producers.insert(operand.op());
        if (readers_[operand.def()].insert(ops_[i]).second && isFreed(operand)) ++waitingReaders_[operand.def()];
      }
      waiting_[ops_[i]] = producers.size();
    }
  }

  Order run() {
    std::set<unsigned> ready; // by position: the order is the same in every run
    for (unsigned i = 0; i < ops_.size(); ++i)
      if (waiting_[ops_[i]] == 0) ready.insert(i);
    Order order;
    while (!ready.empty()) {
      unsigned best = *ready.begin();
      for (unsigned i : ready)
        if (!ops_[i]->def().isTerminator && (ops_[best]->def().isTerminator || gain(*ops_[i]) > gain(*ops_[best])))
          best = i;
      ready.erase(best);
      emit(*ops_[best], order, ready);
    }
    return order;
  }

private:
  static bool isFreed(Value value) {
    return value.op() != nullptr;
  } // inputs and persistent values outlive the function
  int64_t bytes(Value value) const { return storageBytes(value.type(), symbols_).value_or(0); }

  // Bytes alive less after `op` than before it.
  int64_t gain(const Op &op) {
    int64_t freed = 0;
    llvm::SmallPtrSet<ValueDef *, 8> seen;
    for (Value operand : op.operands())
      if (operand && isFreed(operand) && seen.insert(operand.def()).second && waitingReaders_[operand.def()] == 1)
        freed += bytes(operand);
    for (Value result : op.results()) freed -= bytes(result);
    return freed;
  }

  void emit(Op &op, Order &order, std::set<unsigned> &ready) {
    order.push_back(&op);
    llvm::SmallPtrSet<ValueDef *, 8> seen;
    for (Value operand : op.operands())
      if (operand && isFreed(operand) && seen.insert(operand.def()).second) --waitingReaders_[operand.def()];
    llvm::SmallPtrSet<Op *, 8> users;
    for (Value result : op.results())
      for (Op *user : result.users())
        if (users.insert(user).second && --waiting_[user] == 0) ready.insert(position_[user]);
  }

  Order ops_;
  const SymbolValues &symbols_;
  llvm::DenseMap<const Op *, unsigned> position_, waiting_;
  llvm::DenseMap<const ValueDef *, llvm::SmallPtrSet<Op *, 4>> readers_;
  llvm::DenseMap<const ValueDef *, unsigned> waitingReaders_;
};

void reorder(Block &block, llvm::ArrayRef<Op *> order) {
  for (Op *op : order) block.moveBefore(op, nullptr);
}

// The same value in another form: one operand, one result of at least as many bytes.
bool isCopy(const Op &op, const SymbolValues &symbols) {
  if (op.operands().size() != 1 || op.resultCount() != 1 || !op.operand(0u).op()) return false;
  auto made = storageBytes(op.result().type(), symbols), read = storageBytes(op.operand(0u).type(), symbols);
  return made && read && *made >= *read;
}

// Puts each copy in front of its first reader, or of the copies that stand there.
void sinkCopies(Block &block, const SymbolValues &symbols) {
  Order ops = block.opPointers();
  for (Op *op : llvm::reverse(ops)) {
    if (!isCopy(*op, symbols)) continue;
    auto users = op->result().users();
    auto first = std::next(op->getIterator());
    while (first != block.ops().end() && !llvm::is_contained(users, &*first)) ++first;
    if (first == block.ops().end() || first->def().isTerminator) continue;
    while (&*std::prev(first) != op && isCopy(*std::prev(first), symbols)) --first;
    if (&*std::prev(first) != op) block.moveBefore(op, &*first);
  }
}

llvm::Expected<bool> scheduleFunction(Function &function, PassContext &context) {
  SymbolValues symbols = middleOfRanges(function.module());
  Block &block = function.block();
  auto arena = [&]() -> llvm::Expected<int64_t> {
    auto plan = planMemory(function, symbols);
    if (!plan) return plan.takeError();
    return plan->arenaBytes;
  };
  const Order original = block.opPointers();
  auto before = arena();
  if (!before) return before.takeError();
  reorder(block, Scheduler(block, symbols).run());
  auto greedy = arena();
  if (!greedy) return greedy.takeError();
  if (*greedy >= *before) reorder(block, original);
  const Order best = block.opPointers();
  sinkCopies(block, symbols);
  auto late = arena();
  if (!late) return late.takeError();
  if (*late > std::min(*before, *greedy)) reorder(block, best);
  if (block.opPointers() == original) return false;
  if (context.spend("schedule")) return true;
  reorder(block, original);
  return false;
}

} // namespace

llvm::Expected<bool> schedule(Module &module, PassContext &context) {
  bool changed = false;
  for (const auto &function : module.functions()) {
    auto moved = scheduleFunction(*function, context);
    if (!moved) return moved;
    changed |= *moved;
  }
  return changed;
}

} // namespace fusor::passes
