#include "passes/context.h"
#include "ir/graph/printer.h"
#include "passes/memory/memory_plan.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace fusor::passes {

char PassError::ID;

void PassError::log(llvm::raw_ostream &out) const {
  if (location_.known()) out << location_.str() << ": ";
  out << "error: " << message_;
  if (!hint_.empty()) out << "\nhint: " << hint_;
}

llvm::StringRef name(Decision::Kind kind) {
  static constexpr const char *names[] = {"taken", "refused", "near miss", "fallback"};
  return names[static_cast<unsigned>(kind)];
}

std::vector<const Decision *> byWorth(llvm::ArrayRef<Decision> decisions) {
  std::vector<const Decision *> order;
  for (const Decision &d : decisions) order.push_back(&d);
  llvm::stable_sort(order, [](const Decision *a, const Decision *b) { return a->bytesSaved > b->bytesSaved; });
  return order;
}

// What unnamed ops make or read is a few ops away: a product, its scales, a bias, a cast.
static constexpr unsigned kMostSteps = 8;

static std::vector<std::string> namesOf(const ir::Op &op) {
  std::vector<std::string> names;
  for (ir::Value result : op.results())
    if (!result.name().empty()) names.push_back(result.name().str());
  return names;
}

std::vector<std::string> valuesOf(const ir::Op &op) {
  const ir::Op *made = &op;
  for (unsigned step = 0; made && step < kMostSteps; ++step) {
    if (auto names = namesOf(*made); !names.empty()) return names;
    const ir::Op *reader = nullptr;
    for (ir::Value result : made->results())
      if (!reader && !result.unused()) reader = result.users().front();
    made = reader;
  }
  const ir::Op *maker = &op;
  for (unsigned step = 0; maker && step < kMostSteps; ++step) {
    const ir::Op *next = nullptr;
    for (ir::Value operand : maker->operands()) {
      if (!operand) continue;
      if (!operand.name().empty()) return {operand.name().str()};
      if (!next) next = operand.op();
    }
    maker = next;
  }
  return {};
}

bool PassContext::spend(llvm::StringRef rule, const ir::Op *op) {
  if (!enabled(rule) || (options_.fuel && spent_ >= *options_.fuel)) return false;
  ++spent_;
  if (options_.fuel && spent_ == *options_.fuel) {
    lastRewrite_ = Rewrite{rule.str(), "", "", {}};
    if (op) lastRewrite_->subject = ir::printOp(*op), lastRewrite_->location = op->location();
    if (op && op->function()) lastRewrite_->function = op->function()->name().str();
  }
  return true;
}

void PassContext::record(Decision::Kind kind, llvm::StringRef rule, const ir::Op &op, std::string reason,
                         int64_t bytesSaved) {
  std::string function = op.function() ? op.function()->name().str() : "";
  record({kind, rule.str(), std::move(function), ir::printOp(op), op.location(), std::move(reason), bytesSaved,
          valuesOf(op), op.name().str()});
}

ir::SymbolValues PassContext::sizes(const ir::Module &module) const {
  ir::SymbolValues sizes = middleOfRanges(module);
  for (const auto &given : options_.sizes)
    if (auto it = sizes.find(given.getKey()); it != sizes.end()) it->second = given.getValue();
  return sizes;
}

llvm::Expected<ir::Function *> sourceFunction(const ir::Module &module, const PassOptions &options) {
  std::vector<std::string> names;
  for (const auto &function : module.functions()) names.push_back("@" + function->name().str());
  std::string known = names.empty() ? "the module has none" : "the module has " + llvm::join(names, ", ");
  if (options.function.empty() && names.size() == 1) return module.functions()[0].get();
  llvm::StringRef wanted = options.function.empty() ? "forward" : llvm::StringRef(options.function);
  if (ir::Function *function = module.function(wanted)) return function;
  return llvm::make_error<PassError>(ir::Location(),
                                     llvm::formatv("there is no function @{0}; {1}", wanted, known).str(),
                                     names.empty() ? "" : "name one with --func");
}

} // namespace fusor::passes
