// What the users of a value compute in.
#pragma once
#include "ir/graph/graph.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace fusor::passes {

class Demand {
public:
  explicit Demand(int64_t wideHeadBelow) : wideHeadBelow_(wideHeadBelow) {}

  /// A contraction with fewer than wideHeadBelow outputs whose result goes to nothing but a loss or the function's
  /// results.
  bool isWideHead(const ir::Op &op);
  /// `op` is going to compute in f32, though its class is `low`. Say so before asking what its operands want.
  void keepWide(const ir::Op &op) { wide_.insert(&op); }
  /// Some user computes on `value` in the low dtype: directly, or on what follows from it.
  bool wantsLow(ir::Value value);

private:
  bool endsInResults(ir::Value value);
  int64_t wideHeadBelow_;
  llvm::DenseSet<const ir::Op *> wide_;
  llvm::DenseMap<ir::ValueDef *, bool> wantsLow_, endsInResults_;
};

/// `value`, an operand of a `return`, is a result and no gradient or update.
bool isResult(const ir::Op &terminator, ir::Value value);

} // namespace fusor::passes
