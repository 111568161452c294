// Which derived values (bf16 copies of weights, their transposes) are older than what they derive from.
#pragma once
#include "ir/graph/graph.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"

namespace fusor::runtime {

class Freshness {
public:
  /// At first all derived values are stale.
  explicit Freshness(const ir::Module &module);

  bool isStale(llvm::StringRef name) const { return stale_.contains(name); }
  void markAll();
  /// Persistent `name` got new content from outside.
  void written(llvm::StringRef name);
  /// `function` ran: what derives from its updates is stale, but for what it updated itself.
  void ran(const ir::Function &function);
  /// Calls `compute` for each of `names` that is stale, and before it for what it derives from.
  llvm::Error refresh(llvm::ArrayRef<llvm::StringRef> names,
                      llvm::function_ref<llvm::Error(const ir::Persistent &)> compute);

private:
  /// What becomes stale, and what does not, when some values get new content.
  struct Effect {
    std::vector<std::string> stale, fresh;
  };
  Effect effectOf(llvm::StringSet<> names, const llvm::StringSet<> &fresh) const;
  void apply(const Effect &effect);
  const ir::Module &module_;
  llvm::StringSet<> stale_;
  llvm::DenseMap<const ir::Function *, Effect> effects_; // a step runs thousands of times: found out once
};

/// Persistent values that `function` reads.
llvm::SmallVector<llvm::StringRef, 8> readsOf(const ir::Function &function);

/// One function a derived value, "derive.NAME": `return @name = op(@source, ...)`.
llvm::Expected<std::unique_ptr<ir::Module>> derivingModule(const ir::Module &module);

} // namespace fusor::runtime
