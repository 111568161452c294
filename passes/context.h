// What a pass is given besides the module: the options, the fuel, and a place to record its decisions.
#pragma once
#include "ir/graph/graph.h"
#include "passes/options.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"
#include <vector>

namespace fusor::passes {

/// One thing a pass did or did not do, for `fusor explain`, fusions.json and gemms.json.
struct Decision {
  enum class Kind : uint8_t { taken, refused, nearMiss } kind;
  std::string rule;     // "fold-bias", "precision", "fusion"
  std::string function; // where: "train_step"
  std::string subject;  // what: "%y = linear %x, @w : f32[8, 64]", "@w"
  ir::Location location;
  std::string reason;     // why; for near misses what was missing
  int64_t bytesSaved = 0; // of memory traffic, 0 where that is not the point
};
llvm::StringRef name(Decision::Kind kind); // "taken", "refused", "near miss"

/// One thing a pass did, as it stood before.
struct Rewrite {
  std::string rule, function, subject; // subject: "%y = neg %x : f32[8]"; empty where a rule rewrites no single op
  ir::Location location;
};

class PassContext {
public:
  explicit PassContext(const PassOptions &options) : options_(options) {}
  const PassOptions &options() const { return options_; }

  bool enabled(llvm::StringRef rule) const { return !options_.disabledRules.contains(rule); }
  /// Asks to do one rewrite of `rule` at `op`: false where the rule is disabled or the fuel is used up.
  bool spend(llvm::StringRef rule, const ir::Op *op = nullptr);
  int64_t rewrites() const { return spent_; }
  /// The rewrite that the last of the fuel was spent on. Without a limit none is kept.
  const std::optional<Rewrite> &lastRewrite() const { return lastRewrite_; }

  void record(Decision decision) { decisions_.push_back(std::move(decision)); }
  /// The same with function, subject and location taken from `op`.
  void record(Decision::Kind kind, llvm::StringRef rule, const ir::Op &op, std::string reason, int64_t bytesSaved = 0);
  llvm::ArrayRef<Decision> decisions() const { return decisions_; }

private:
  const PassOptions &options_;
  int64_t spent_ = 0;
  std::optional<Rewrite> lastRewrite_;
  std::vector<Decision> decisions_;
};

/// The user's mistake, found by a pass: prints as "model.fir:4:8: error: MESSAGE" and "hint: HINT".
class PassError : public llvm::ErrorInfo<PassError> {
public:
  static char ID;
  PassError(ir::Location location, std::string message, std::string hint = "")
      : location_(std::move(location)), message_(std::move(message)), hint_(std::move(hint)) {}
  const ir::Location &location() const { return location_; }
  llvm::StringRef text() const { return message_; }
  llvm::StringRef hint() const { return hint_; }
  void log(llvm::raw_ostream &out) const override;
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

private:
  ir::Location location_;
  std::string message_, hint_;
};

/// The function that `options.function` names: an error where it does not exist, or where it is left open and there are
/// several, none called "forward".
llvm::Expected<ir::Function *> sourceFunction(const ir::Module &module, const PassOptions &options);

} // namespace fusor::passes
