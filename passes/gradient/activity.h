// Which values gradients flow through: those that a parameter influences and that influence the loss.
#pragma once
#include "ir/graph/graph.h"
#include "llvm/ADT/DenseSet.h"

namespace fusor::passes {

class Activity {
public:
  /// `loss` is a value of `function`'s own block.
  Activity(ir::Function &function, ir::Value loss);
  /// A float that depends on a param.
  bool varies(ir::Value value) const { return value && varies_.contains(value.def()); }
  /// The loss depends on one of its results, and it depends on a param.
  bool active(const ir::Op &op) const { return active_.contains(&op); }

private:
  llvm::DenseSet<ir::ValueDef *> varies_;
  llvm::DenseSet<const ir::Op *> active_;
};

/// The param a gradient of this read goes to: itself, or what a derived value was cast or quantised from (the gradient
/// passes straight through). Null where it is none.
const ir::Persistent *parameterBehind(const ir::Module &module, ir::Value read);

} // namespace fusor::passes
