// Greedy: every cut that keeps the failure is kept, until none does. Cuts, largest first: a result of the function, an
// op (its results become an operand or a new argument), an operand (becomes a new argument), what is then unused.
#include "ir/ops/op_def.h"
#include "ir/random/random_graph.h"
#include "ir/verify/verify.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::ir {
namespace {

void dropUnused(Module &module) {
  for (const auto &function : module.functions()) {
    auto ops = function->block().opPointers();
    for (Op *op : llvm::reverse(ops))
      if (op->unused() && !op->def().isTerminator && !op->def().hasSideEffectOrder) op->erase();
    for (unsigned i = function->block().argumentCount(); i-- > 0;)
      if (function->block().argument(i).unused()) function->block().eraseArgument(i);
  }
  std::vector<std::string> names;
  for (const auto &p : module.persistents()) names.push_back(p->name);
  for (const std::string &name : llvm::reverse(names)) {
    bool used = llvm::any_of(module.functions(), [&](const auto &f) {
      return llvm::any_of(f->reads(), [&](Value v) { return v.name() == name && !v.unused(); }) ||
             llvm::any_of(f->returns(), [&](const ReturnEntry &e) { return e.name == name; });
    });
    used |= llvm::any_of(module.persistents(), [&](const auto &p) { return llvm::is_contained(p->deriveFrom, name); });
    if (!used) module.erasePersistent(name);
  }
}

// What shrinking makes smaller; every cut must, so it ends.
size_t sizeOf(const Module &module) {
  size_t size = module.persistents().size();
  for (const auto &function : module.functions()) {
    size += function->returns().size() + function->block().argumentCount();
    for (const Op &op : function->block().ops()) {
      size += 1000;
      for (Value v : op.operands()) size += v && !v.isArgument() ? 10 : 0;
    }
  }
  return size;
}

class Shrinker {
public:
  Shrinker(const Module &module, llvm::function_ref<bool(const Module &)> fails)
      : best_(module.clone()), fails_(fails) {}

  std::unique_ptr<Module> run() {
    tryCut([](Module &) { return true; }); // what is unused already
    while (returnEarly() || cutReturns() || peelReturns() || cutDead() || cutOps() || cutOperands()) {
    }
    return std::move(best_);
  }

private:
  /// Applies `cut` to a copy; keeps it where the copy still fails, without what is then unused if it can. `cut` returns
  /// whether it found anything to do.
  template <typename Cut> bool tryCut(Cut cut) {
    for (bool withDead : {false, true}) {
      auto copy = best_->clone();
      if (!cut(*copy)) return false;
      if (!withDead) dropUnused(*copy);
      if (sizeOf(*copy) >= sizeOf(*best_)) continue;
      if (auto error = verify(*copy)) {
        llvm::consumeError(std::move(error));
        continue;
      }
      if (!fails_(*copy)) continue;
      best_ = std::move(copy);
      return true;
    }
    return false;
  }

  size_t functionCount() const { return best_->functions().size(); }
  Function &function(Module &m, size_t f) const { return *m.functions()[f]; }

  // One op's results, the earliest that fails, instead of what the function returns.
  bool returnEarly() {
    for (size_t f = 0; f < functionCount(); ++f)
      for (size_t i = 0; i < function(*best_, f).block().ops().size(); ++i)
        if (tryCut([&](Module &m) {
              Op *op = function(m, f).block().opPointers()[i];
              llvm::SmallVector<ReturnEntry, 4> returns;
              for (Value result : op->results()) returns.push_back({ReturnKind::result, "", result});
              if (returns.empty()) return false;
              function(m, f).setReturns(returns);
              return true;
            }))
          return true;
    return false;
  }

  bool cutReturns() {
    bool any = false;
    for (size_t f = 0; f < functionCount(); ++f)
      for (size_t i = function(*best_, f).returns().size(); i-- > 0;)
        any |= tryCut([&](Module &m) {
          auto returns = function(m, f).returns();
          if (returns.size() < 2) return false;
          returns.erase(returns.begin() + i);
          function(m, f).setReturns(returns);
          return true;
        });
    return any;
  }

  // What made a result, instead of the result.
  bool peelReturns() {
    bool any = false;
    for (size_t f = 0; f < functionCount(); ++f)
      for (size_t i = function(*best_, f).returns().size(); i-- > 0;)
        any |= tryCut([&](Module &m) {
          auto returns = function(m, f).returns();
          if (i >= returns.size() || !returns[i].value.op() || returns[i].kind != ReturnKind::result) return false;
          Op *op = returns[i].value.op();
          returns.erase(returns.begin() + i);
          for (Value operand : op->operands())
            if (operand && !operand.isArgument()) returns.push_back({ReturnKind::result, "", operand});
          if (returns.empty()) return false;
          function(m, f).setReturns(returns);
          return true;
        });
    return any;
  }

  // A dead op that the failure does not need.
  bool cutDead() {
    bool any = false;
    for (size_t f = 0; f < functionCount(); ++f)
      for (size_t i = function(*best_, f).block().ops().size(); i-- > 0;)
        any |= tryCut([&](Module &m) {
          auto ops = function(m, f).block().opPointers();
          if (i >= ops.size() || !ops[i]->unused() || ops[i]->def().isTerminator) return false;
          ops[i]->erase();
          return true;
        });
    return any;
  }

  Value newArgument(Function &f, const TensorType &type) {
    return f.block().addArgument(type, "cut" + std::to_string(cuts_++));
  }

  // The op's results become an operand of their type, else new arguments.
  bool cutOps() {
    bool any = false;
    for (size_t f = 0; f < functionCount(); ++f)
      for (size_t i = function(*best_, f).block().ops().size(); i-- > 0;)
        for (bool byOperand : {true, false})
          any |= tryCut([&](Module &m) {
            auto ops = function(m, f).block().opPointers();
            if (i >= ops.size() || ops[i]->def().isTerminator) return false;
            for (Value result : ops[i]->results()) {
              if (result.unused()) continue;
              Value instead;
              if (byOperand)
                for (Value operand : ops[i]->operands())
                  if (operand && operand.type() == result.type()) instead = operand;
              if (byOperand && !instead) return false;
              result.replaceAllUsesWith(instead ? instead : newArgument(function(m, f), result.type()));
            }
            return true;
          });
    return any;
  }

  bool cutOperands() {
    bool any = false;
    for (size_t f = 0; f < functionCount(); ++f)
      for (size_t i = function(*best_, f).block().ops().size(); i-- > 0;)
        for (unsigned k = 0; k < 8; ++k)
          any |= tryCut([&](Module &m) {
            auto ops = function(m, f).block().opPointers();
            if (i >= ops.size() || ops[i]->def().isTerminator || k >= ops[i]->operands().size()) return false;
            Value operand = ops[i]->operand(k);
            if (!operand || operand.isArgument()) return false;
            ops[i]->setOperand(k, newArgument(function(m, f), operand.type()));
            return true;
          });
    return any;
  }

  std::unique_ptr<Module> best_;
  llvm::function_ref<bool(const Module &)> fails_;
  unsigned cuts_ = 0;
};

} // namespace

std::unique_ptr<Module> shrink(const Module &module, llvm::function_ref<bool(const Module &)> fails) {
  return Shrinker(module, fails).run();
}

} // namespace fusor::ir
