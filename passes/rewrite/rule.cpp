#include "passes/rewrite/rule.h"
#include "ir/graph/bug.h"
#include "ir/graph/printer.h"
#include "ir/ops/op_def.h"
#include "passes/rewrite/erase.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::passes {
namespace {

// A graph of n ops needs as many sweeps as its longest chain of rewrites; clean-ups take less than ten.
constexpr unsigned kMostSweeps = 1000;

class Driver {
public:
  Driver(ir::Function &function, llvm::ArrayRef<Rule> rules, PassContext &context)
      : function_(function), context_(context) {
    for (const Rule &rule : rules) {
      if (rule.match.kind() == Pattern::Kind::op)
        byRoot_[rule.match.opName()].push_back(&rule);
      else
        general_.push_back(&rule);
    }
  }

  bool run() {
    bool changed = false;
    for (unsigned sweeps = 0; sweep(); ++sweeps) {
      changed = true;
      if (sweeps == kMostSweeps)
        FUSOR_BUG("rules do not come to rest in @{0}; the last that fired is '{1}'", function_.name(), lastFired_);
    }
    return changed;
  }

private:
  bool sweep() {
    bool changed = false;
    erased_.clear();
    for (ir::Op *op : function_.block().opPointers())
      if (!erased_.contains(op)) changed |= visit(*op);
    return changed;
  }

  bool visit(ir::Op &op) {
    auto it = byRoot_.find(op.name());
    if (it != byRoot_.end())
      for (const Rule *rule : it->second)
        if (apply(*rule, op)) return true;
    return llvm::any_of(general_, [&](const Rule *rule) { return apply(*rule, op); });
  }

  bool apply(const Rule &rule, ir::Op &op) {
    if (!context_.enabled(rule.name)) return false;
    bool explains = rule.explained && context_.options().explain;
    NearMiss miss;
    auto found = match(rule.match, op, explains ? &miss : nullptr);
    if (!found) {
      if (explains && miss.opsMatched >= 2) note(Decision::Kind::nearMiss, rule, op, std::move(miss.reason));
      return false;
    }
    if (Verdict verdict = rule.when ? rule.when(*found) : Verdict::yes(); !verdict) {
      if (explains) note(Decision::Kind::refused, rule, op, verdict.reason());
      return false;
    }
    if (!context_.spend(rule.name, &op)) return false;
    if (rule.explained) note(Decision::Kind::taken, rule, op, "");
    lastFired_ = rule.name;
    replace(rule, *found);
    return true;
  }

  void replace(const Rule &rule, const Match &found) {
    ir::Op &root = found.root();
    ir::Builder builder(root);
    builder.setLocation(root.location());
    Replacement replacement = rule.rewrite(found, builder);
    if (replacement.values.size() != root.resultCount())
      FUSOR_BUG("rule '{0}' gives {1} values for {2}", rule.name, replacement.values.size(), ir::printOp(root));
    for (unsigned i = 0; i < root.resultCount(); ++i) {
      ir::Value value = replacement.values[i], old = root.result(i);
      if (value.type() != old.type())
        FUSOR_BUG("rule '{0}' gives {1} for {2}", rule.name, value.type().str(), ir::printOp(root));
      if (value.op() && value.name().empty()) value.setName(old.name());
      old.replaceAllUsesWith(value);
    }
    eraseDead(root, [&](ir::Op &op) { erased_.insert(&op); });
  }

  void note(Decision::Kind kind, const Rule &rule, const ir::Op &op, std::string reason) {
    if (noted_.insert({&rule, &op}).second || kind == Decision::Kind::taken)
      context_.record(kind, rule.name, op, std::move(reason));
  }

  ir::Function &function_;
  PassContext &context_;
  llvm::StringMap<llvm::SmallVector<const Rule *, 4>> byRoot_;
  llvm::SmallVector<const Rule *, 4> general_;
  llvm::DenseSet<const ir::Op *> erased_;
  llvm::DenseSet<std::pair<const Rule *, const ir::Op *>> noted_;
  llvm::StringRef lastFired_;
};

} // namespace

bool rewriteToFixpoint(ir::Function &function, llvm::ArrayRef<Rule> rules, PassContext &context) {
  return Driver(function, rules, context).run();
}

} // namespace fusor::passes
