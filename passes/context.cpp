#include "passes/context.h"
#include "ir/graph/printer.h"
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
  static constexpr const char *names[] = {"taken", "refused", "near miss"};
  return names[static_cast<unsigned>(kind)];
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
  record({kind, rule.str(), std::move(function), ir::printOp(op), op.location(), std::move(reason), bytesSaved});
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
