#include "passes/simplify/simplify.h"
#include "ir/graph/bug.h"
#include "passes/rewrite/erase.h"

namespace fusor::passes {

static const std::vector<Rule> &rules() {
  static const std::vector<Rule> all = [] {
    std::vector<Rule> rules = identityRules();
    rules.insert(rules.end(), movementRules().begin(), movementRules().end());
    return rules;
  }();
  return all;
}

llvm::Expected<bool> simplify(ir::Module &module, PassContext &context) {
  bool changed = false;
  for (const auto &function : module.functions())
    for (unsigned round = 0;; ++round) {
      bool again = eraseAllDead(function->block());
      again |= foldConstants(*function, context);
      again |= rewriteToFixpoint(*function, rules(), context);
      again |= mergeEqual(*function, context);
      changed |= again;
      if (!again) break;
      if (round == 100) FUSOR_BUG("simplify does not come to rest in @{0}", function->name());
    }
  return changed;
}

} // namespace fusor::passes
