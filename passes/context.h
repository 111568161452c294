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
  /// fallback: no back end has a kernel for it, the run time evaluates it through its reference.
  enum class Kind : uint8_t { taken, refused, nearMiss, fallback } kind;
  std::string rule;     // "fold-bias", "precision", "fusion"
  std::string function; // where: "train_step"
  std::string subject;  // what: "%y = linear %x, @w : f32[8, 64]", "@w"
  ir::Location location;
  std::string reason; // why; for near misses what was missing
  /// Of memory traffic, or of the arena where the rule is about that; what it would have saved where it is not taken;
  /// 0 where bytes are not the point. At the sizes of PassContext::sizes.
  int64_t bytesSaved = 0;
  /// The values it is about, as modules name them, without % and @: "y". Where what it is about has no name, the named
  /// value nearest to it.
  std::vector<std::string> values = {};
  std::string op = {}; // the op it is about, where it is about one: "linear"
};
llvm::StringRef name(Decision::Kind kind); // "taken", "refused", "near miss", "fallback"
/// What is worth most comes first; what is worth the same in the order in which it was decided.
std::vector<const Decision *> byWorth(llvm::ArrayRef<Decision> decisions);
/// The names of an op's results; where none has one, that of the nearest value that is made of them, else of the
/// nearest that they are made of.
std::vector<std::string> valuesOf(const ir::Op &op);

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
  /// The same with function, subject, location and values taken from `op`.
  void record(Decision::Kind kind, llvm::StringRef rule, const ir::Op &op, std::string reason, int64_t bytesSaved = 0);
  llvm::ArrayRef<Decision> decisions() const { return decisions_; }
  /// The sizes at which decisions count bytes: options.sizes, and the middle of the range of every other symbol.
  ir::SymbolValues sizes(const ir::Module &module) const;

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
