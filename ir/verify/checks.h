// The parts of the verifier. Only ir/verify/*.cpp include this.
#pragma once
#include "ir/verify/verify.h"
#include "llvm/Support/FormatVariadic.h"

namespace fusor::ir {

class Problems {
public:
  template <typename... Args> void add(const Location &location, const char *format, Args &&...args) {
    problems_.push_back({location, function, llvm::formatv(format, std::forward<Args>(args)...).str()});
  }
  size_t count() const { return problems_.size(); }
  std::vector<Problem> take() { return std::move(problems_); }

  std::string function; // being checked

private:
  std::vector<Problem> problems_;
};

void verifyPersistents(const Module &module, Problems &problems);
void verifyFunction(const Function &function, Problems &problems);
/// The updates and gradients of a function's `return`.
void verifyReturn(const Function &function, const Op &terminator, Problems &problems);
/// "symbol 'B' is not declared" for each symbol of `type` that the module lacks; `what` names whose type it is.
void verifySymbols(const Module &module, const TensorType &type, llvm::function_ref<std::string()> what,
                   const Location &location, Problems &problems);

} // namespace fusor::ir
