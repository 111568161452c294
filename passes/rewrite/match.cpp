#include "passes/rewrite/match.h"
#include "ir/graph/bug.h"
#include "ir/ops/op_def.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::passes {

ir::Value Match::operator[](llvm::StringRef capture) const {
  auto it = captures_.find(capture);
  if (it == captures_.end()) FUSOR_BUG("a rule asks for capture '{0}', which its pattern does not have", capture);
  return it->second;
}

double Match::number(llvm::StringRef capture) const { return op(capture).attr<double>("value"); }

Verdict Match::sameType(llvm::StringRef capture) const {
  ir::Value value = (*this)[capture];
  return require(value.type() == root_->result().type(), "%{0} is {1}, the result is {2}", value.name(),
                 value.type().str(), root_->result().type().str());
}

// Matches in continuation-passing style: `next` is what is left to match, so that a choice made inside (the order of a
// commutative op's operands) is taken back when something later does not fit.
class Matcher {
public:
  using Next = llvm::function_ref<bool()>;
  Matcher(Match &match, NearMiss *miss) : match_(match), miss_(miss) {}

  bool matchOp(const Pattern &p, ir::Op &op, Next next) {
    if (p.kind() == Pattern::Kind::op && op.name() != p.opName()) return madeBy(op, p.opName());
    if (p.kind() == Pattern::Kind::elementwise && !op.def().isElementwise()) return madeBy(op, "an elementwise op");
    ++depth_;
    bool matched = matchOperands(p, op, next);
    --depth_;
    return matched;
  }

  bool matchValue(const Pattern &p, ir::Value value, Next next) {
    if (!value) return missed("an operand is absent");
    if (p.isOnce() && !value.hasOneUse())
      return missed("%{0} is used {1} times, once is wanted", value.name(), value.users().size());
    if (p.name().empty()) return matchNode(p, value, next);
    auto [it, isNew] = match_.captures_.try_emplace(p.name(), value);
    if (!isNew)
      return it->second == value ? matchNode(p, value, next)
                                 : missed("%{0} and %{1} would have to be one value", it->second.name(), value.name());
    if (matchNode(p, value, next)) return true;
    match_.captures_.erase(p.name());
    return false;
  }

private:
  bool matchNode(const Pattern &p, ir::Value value, Next next) {
    ir::Op *op = value.op();
    switch (p.kind()) {
    case Pattern::Kind::any: return next();
    case Pattern::Kind::number:
      if (op && op->is("constant") && op->attr<double>("value") == *p.value()) return next();
      return missed("%{0} is not {1}", value.name(), *p.value());
    case Pattern::Kind::constant:
      if (op && op->is("constant")) return next();
      return missed("%{0} is no constant", value.name());
    case Pattern::Kind::op:
    case Pattern::Kind::elementwise:
      if (!op) return missed("%{0} is made outside, by {1} is wanted", value.name(), p.opName());
      if (p.operands() && value.index() != 0) return missed("%{0} is not the first result", value.name());
      return matchOp(p, *op, next);
    }
    return false;
  }

  bool matchOperands(const Pattern &p, ir::Op &op, Next next) {
    if (!p.operands()) return next();
    if (p.operands()->size() != op.operands().size())
      return missed("'{0}' has {1} operands, {2} are wanted", op.name(), op.operands().size(), p.operands()->size());
    llvm::SmallVector<ir::Value, 4> operands(op.operands().begin(), op.operands().end());
    if (matchList(*p.operands(), operands, next)) return true;
    if (!op.def().isCommutative || operands.size() != 2) return false;
    std::swap(operands[0], operands[1]);
    return matchList(*p.operands(), operands, next);
  }

  bool matchList(llvm::ArrayRef<Pattern> patterns, llvm::ArrayRef<ir::Value> values, Next next) {
    if (patterns.empty()) return next();
    return matchValue(patterns.front(), values.front(),
                      [&] { return matchList(patterns.drop_front(), values.drop_front(), next); });
  }

  bool madeBy(const ir::Op &op, llvm::StringRef wanted) {
    return missed("%{0} is made by '{1}', by {2} is wanted", op.resultCount() ? op.result().name() : "", op.name(),
                  wanted);
  }
  // Remembers the failure that came furthest.
  template <typename... Args> bool missed(const char *format, Args &&...args) {
    if (miss_ && (depth_ > miss_->opsMatched || miss_->reason.empty()))
      *miss_ = {depth_, llvm::formatv(format, std::forward<Args>(args)...).str()};
    return false;
  }

  Match &match_;
  NearMiss *miss_;
  unsigned depth_ = 0;
};

std::optional<Match> match(const Pattern &pattern, ir::Op &root, NearMiss *miss) {
  Match found(root);
  Matcher matcher(found, miss);
  if (!matcher.matchOp(pattern, root, [] { return true; })) return std::nullopt;
  return found;
}

} // namespace fusor::passes
