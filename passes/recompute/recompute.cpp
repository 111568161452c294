#include "passes/recompute/recompute.h"
#include "ir/graph/builder.h"
#include "ir/ops/op_def.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"
#include <map>
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
  if (op.def().isElementwise() || op.is("fp8_cast"))
    return Formula{op.name(), llvm::to_vector<5>(op.operands()), op.attrs()};
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

// Who reads a value, and how long it would wait for them.
struct Readers {
  Ops all;
  llvm::SmallVector<OpSet, 4> after; // what depends on each of them
  OpSet late;                        // depends on one of them, or is a copy for something that does

  Ops served(llvm::function_ref<bool(unsigned)> isServed) const {
    Ops served;
    for (unsigned i = 0; i < all.size(); ++i)
      if (late.contains(all[i]) && isServed(i)) served.push_back(all[i]);
    return served;
  }
};

struct Again {
  Ops readers; // that the value would wait for
  Op *beside;  // reads what the value is computed from, later than the value's first readers; may be none
  Ops chain;   // what is computed again, the value's own op first
  std::string why;
};

constexpr unsigned kMostOps = 4; // of a chain: what a kernel computes beside its own work

bool isComputed(Value value) { return value && value.op() && value.rank() > 0; }
bool isResultOf(const Ops &chain, Value value) { return value.index() == 0 && llvm::is_contained(chain, value.op()); }
unsigned width(Value value) { return byteSize(value.dtype()); }

class Recomputer {
public:
  Recomputer(Function &function, PassContext &context)
      : function_(function), context_(context), sizes_(context.sizes(function.module())) {}

  bool run() {
    auto ops = function_.block().opPointers();
    for (Op *op : llvm::reverse(ops)) // from the end: copies are among the readers of what they are computed from
      if (cheapFormula(*op)) consider(*op);
    for (Op *op : ops) placeCopiesFor(*op);
    return !copies_.empty();
  }

private:
  void consider(Op &op) {
    auto again = findAgain(op);
    if (!again || !context_.spend("recompute", &op)) return;
    Value copy = copyOf(op, *again);
    for (Op *reader : again->readers)
      for (unsigned i = 0; i < reader->operands().size(); ++i)
        if (reader->operand(i) == op.result()) reader->setOperand(i, copy);
    auto names = llvm::map_range(again->readers, [](Op *reader) { return reader->name(); });
    context_.record(Decision::Kind::taken, "recompute", op,
                    "computed again for " + llvm::join(names, ", ") + ", " + again->why,
                    byteSize(op.result().type(), sizes_).value_or(0));
  }

  // Which readers of the op's result to serve by a copy, if any.
  std::optional<Again> findAgain(Op &op) const {
    Readers readers;
    readers.all = distinctUsers(op.result());
    if (readers.all.size() < 2) return std::nullopt;
    for (Op *reader : readers.all) {
      if (reader->def().isTerminator) return std::nullopt; // the caller gets it: it has to lie there
      readers.after.push_back(dependents(*reader));
      for (const Op *dependent : readers.after.back()) readers.late.insert(dependent);
      if (isCopy_.contains(reader)) readers.late.insert(reader);
    }
    if (readers.served([](unsigned) { return true; }).empty()) return std::nullopt;
    if (auto again = besideOf(op, readers)) return again;
    if (auto again = widenedByReaders(op, readers)) return again;
    return narrowedAgain(op, readers);
  }

  // In a kernel that has its elements at hand.
  std::optional<Again> besideOf(Op &op, const Readers &readers) const {
    Ops open = {&op};
    for (unsigned next = 0; next < open.size() && next < kMostOps; ++next) {
      Formula formula = *cheapFormula(*open[next]);
      for (Value operand : formula.operands) {
        if (!isComputed(operand)) continue;
        for (Op *beside : distinctUsers(operand)) {
          bool isThere = hasElementsAtHand(*beside) && readers.late.contains(beside) && !isCopy_.contains(beside) &&
                         beside->result().shape() == op.result().shape();
          auto chain = isThere ? chainFrom(*beside, op) : std::nullopt;
          if (!chain) continue;
          Ops served = readers.served([&](unsigned i) { // those that `beside` needs have read the value by then
            return readers.all[i] != beside && !readers.after[i].contains(beside);
          });
          if (!served.empty()) return Again{served, beside, *chain, "beside " + beside->name().str()};
        }
        if (continues(operand, op)) open.push_back(operand.op());
      }
    }
    return std::nullopt;
  }

  // Whether a chain that ends in `op` may have `value` in its middle.
  static bool continues(Value value, const Op &op) {
    return value.index() == 0 && value.shape() == op.result().shape() && cheapFormula(*value.op());
  }

  // The ops from what `beside` reads to `op`, `op` first; none where something else would have to wait too.
  static std::optional<Ops> chainFrom(const Op &beside, Op &op) {
    Ops chain = {&op};
    bool reads = false;
    for (unsigned next = 0; next < chain.size(); ++next) {
      Formula formula = *cheapFormula(*chain[next]);
      for (Value operand : formula.operands) {
        if (!isComputed(operand) || isResultOf(chain, operand)) continue;
        if (llvm::is_contained(beside.operands(), operand))
          reads = true;
        else if (continues(operand, op) && chain.size() < kMostOps)
          chain.push_back(operand.op());
        else
          return std::nullopt;
      }
    }
    return reads ? std::optional<Ops>(std::move(chain)) : std::nullopt;
  }

  // A widening cast is part of any kernel that works on elements, and its operand has fewer bytes: no matter whether
  // that waits anyway, it waits in its place.
  std::optional<Again> widenedByReaders(Op &op, const Readers &readers) const {
    if (!op.is("cast") || width(op.result()) <= width(op.operand(0u))) return std::nullopt;
    Ops served = readers.served([](unsigned) { return true; });
    if (!llvm::all_of(served, [](Op *reader) { return hasElementsAtHand(*reader); })) return std::nullopt;
    return Again{served, nullptr, {&op}, "which can widen it"};
  }

  // A narrow copy of what waits anyway: in a kernel of its own, one more read.
  std::optional<Again> narrowedAgain(Op &op, const Readers &readers) const {
    Value wide = op.operand(0u);
    bool isNarrow = (op.is("cast") || op.is("fp8_cast")) && width(op.result()) < width(wide);
    if (!isNarrow || !llvm::any_of(wide.users(), [&](Op *user) { return readers.late.contains(user); }))
      return std::nullopt;
    return Again{readers.served([](unsigned) { return true; }), nullptr, {&op}, "from what waits anyway"};
  }

  // Behind its original, one for all that asks for it beside the same op.
  Value copyOf(Op &op, const Again &again) {
    Op *&copy = copies_[{&op, again.beside}];
    if (copy) return copy->result();
    Formula formula = *cheapFormula(op);
    for (Value &operand : formula.operands)
      if (operand && isResultOf(again.chain, operand)) operand = copyOf(*operand.op(), again);
    Builder builder(*std::next(op.getIterator()));
    builder.setLocation(op.location());
    Value value = builder.op(formula.op, formula.operands, formula.attrs);
    value.setName(op.result().name());
    isCopy_.insert(copy = value.op());
    return value;
  }

  // In front of their first reader, which `op` is.
  void placeCopiesFor(Op &op) {
    for (Value operand : op.operands()) {
      if (!operand || !operand.op() || !isCopy_.erase(operand.op())) continue;
      function_.block().moveBefore(operand.op(), &op);
      placeCopiesFor(*operand.op());
    }
  }

  Function &function_;
  PassContext &context_;
  SymbolValues sizes_;                                       // of decisions
  std::map<std::pair<const Op *, const Op *>, Op *> copies_; // of an op, beside another
  OpSet isCopy_;
};

} // namespace

llvm::Expected<bool> recompute(Module &module, PassContext &context) {
  if (!context.options().recompute) return false;
  bool changed = false;
  for (const auto &function : module.functions()) changed |= Recomputer(*function, context).run();
  return changed;
}

} // namespace fusor::passes
