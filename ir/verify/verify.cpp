#include "ir/verify/verify.h"
#include "ir/graph/literal.h"
#include "ir/graph/names.h"
#include "ir/verify/checks.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

namespace fusor::ir {

std::string Problem::str() const {
  std::string text = location.known() ? location.str() + ": " : "";
  if (!function.empty()) text += "in func " + spelled('@', function) + ": ";
  return text + message;
}

std::vector<Problem> findProblems(const Module &module) {
  Problems problems;
  for (const auto &[name, range] : module.symbols()) {
    if (!isSymbolName(name)) problems.add({}, "symbol {0} is not a name of letters, digits and _", quoted(name));
    if (range.low < 0 || range.high < range.low)
      problems.add({}, "symbol '{0}' has the empty or negative range {1}..{2}", name, range.low, range.high);
  }
  verifyPersistents(module, problems);
  llvm::StringSet<> names;
  for (const auto &function : module.functions()) {
    if (function->name().empty()) problems.add({}, "a function has no name");
    if (!names.insert(function->name()).second)
      problems.add({}, "two functions are called {0}", spelled('@', function->name()));
    verifyFunction(*function, problems);
  }
  return problems.take();
}

llvm::Error verify(const Module &module) {
  std::vector<Problem> problems = findProblems(module);
  if (problems.empty()) return llvm::Error::success();
  std::vector<std::string> lines;
  for (const Problem &problem : problems) lines.push_back(problem.str());
  return llvm::createStringError(llvm::inconvertibleErrorCode(), llvm::join(lines, "\n"));
}

} // namespace fusor::ir
