// A wrong rule in the command's passes: exp(-x) becomes exp(x). The linker puts planted() in front of the list of
// identities (--wrap), so no product code knows of it.
#include "passes/rewrite/rule.h"
#include "passes/simplify/simplify.h"

namespace fusor::passes {

llvm::ArrayRef<Rule> realRules() asm("__real__ZN5fusor6passes13identityRulesEv");
llvm::ArrayRef<Rule> plantedRules() asm("__wrap__ZN5fusor6passes13identityRulesEv");

llvm::ArrayRef<Rule> plantedRules() {
  static const std::vector<Rule> rules = [] {
    std::vector<Rule> all = realRules().vec();
    all.push_back({"planted", op("exp", {op("neg", {any("x")})}), nullptr,
                   [](const Match &m, ir::Builder &b) -> Replacement { return b.op("exp", {m["x"]}); }});
    return all;
  }();
  return rules;
}

} // namespace fusor::passes
