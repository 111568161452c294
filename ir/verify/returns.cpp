// `return %loss, @w = %new, grad @v = %dv`
#include "ir/graph/names.h"
#include "ir/ops/op_def.h"
#include "ir/verify/checks.h"
#include "llvm/ADT/StringSet.h"

namespace fusor::ir {

void verifyReturn(const Function &function, const Op &terminator, Problems &problems) {
  const Location &at = terminator.location();
  const AttrValue *targets = terminator.attrs().find("targets");
  const auto *names = targets ? std::get_if<std::vector<std::string>>(targets) : nullptr;
  if (targets && !names) return; // reported with the op's attributes
  if (names && names->size() != terminator.operands().size())
    return problems.add(at, "'return' has {0} targets for {1} values", names->size(), terminator.operands().size());

  llvm::StringSet<> updated, differentiated;
  for (unsigned i = 0; i < terminator.operands().size(); ++i) {
    Value value = terminator.operand(i);
    llvm::StringRef target = names ? llvm::StringRef((*names)[i]) : "";
    if (!value || target.empty()) continue;
    bool isGradient = target.consume_front("grad ");
    std::string who = spelled('@', target);
    const Persistent *persistent = function.module().persistent(target);
    if (!persistent) {
      problems.add(at, "'return' {0} {1}, which is not declared", isGradient ? "gives the gradient of" : "updates",
                   who);
      continue;
    }
    if (!(isGradient ? differentiated : updated).insert(target).second)
      problems.add(at, "'return' {0} {1} twice", isGradient ? "gives the gradient of" : "updates", who);
    if (isGradient && persistent->kind != PersistentKind::param)
      problems.add(at, "'return' gives the gradient of {0}, which is a {1}; only a param has one", who,
                   name(persistent->kind));
    if (!isGradient && persistent->kind == PersistentKind::constant)
      problems.add(at, "'return' updates {0}, which is a const", who);
    // A gradient may be narrower than its param; its shape is the param's.
    if (isGradient ? value.type().shape != persistent->type.shape : value.type() != persistent->type)
      problems.add(at, "'return' {0} {1}, which is {2}, with {3}", isGradient ? "gives the gradient of" : "updates",
                   who, persistent->type.str(), value.type().str());
  }
}

} // namespace fusor::ir
