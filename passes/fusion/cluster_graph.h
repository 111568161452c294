// The function as a graph of clusters while fusion decides: which ops are together, who feeds whom, what a border
// costs.
#pragma once
#include "codegen/plan/accept.h"
#include "ir/graph/graph.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

namespace fusor::passes {

using Ops = llvm::SmallVector<ir::Op *, 8>;

/// What a set of ops needs and gives, once views (reshape) and generators (constant, extent, iota) that it uses are
/// inside.
struct Border {
  Ops ops;                                 // in program order, views and generators included
  llvm::SmallVector<ir::Value, 8> inputs;  // in order of first use
  llvm::SmallVector<ir::Value, 4> outputs; // used outside
};

class ClusterGraph {
public:
  explicit ClusterGraph(ir::Function &function);

  /// Clusters that exist, ascending. A cluster's id is stable until it is merged into another.
  llvm::SmallVector<unsigned, 0> ids() const;
  const Ops &ops(unsigned id) const { return clusters_[id].ops; }
  /// The cluster an op belongs to; none for views, generators and the return.
  std::optional<unsigned> clusterOf(const ir::Op *op) const;
  /// The op that computes what `value` holds, looking through views; null for inputs.
  static ir::Op *producer(ir::Value value);
  static bool isView(const ir::Op &op) { return op.def().lowering == ir::Lowering::view; }
  /// Ops without operands: cheaper to repeat than to read.
  static bool isGenerator(const ir::Op &op) {
    return op.operands().empty() && op.resultCount() == 1 && !op.body(); // a fusion of a constant is a kernel
  }

  Border border(llvm::ArrayRef<ir::Op *> ops) const;
  /// Clusters that share a value with `id`: its producers, consumers, and readers of the same inputs.
  llvm::SmallSetVector<unsigned, 8> neighbours(unsigned id) const;
  /// Bytes that neither has to be written nor read any more when the two are one; symbols at the middle of their
  /// ranges.
  int64_t savedBytes(unsigned a, unsigned b) const { return savedBytes(a, b, symbols_); }
  int64_t savedBytes(unsigned a, unsigned b, const ir::SymbolValues &symbols) const;
  /// A third cluster that some path from one to the other leads through: merged they would wait for each other.
  std::optional<unsigned> between(unsigned a, unsigned b) const;
  bool wouldCycle(unsigned a, unsigned b) const { return between(a, b).has_value(); }
  /// Puts `b`'s ops into `a`.
  void merge(unsigned a, unsigned b);

  /// All units (clusters as one) in an order where everything is defined before it is used; each view, generator and
  /// return is a unit of its own. Among ready units the one whose first op stood first comes first.
  std::vector<Ops> order() const;
  ir::Function &function() const { return function_; }

private:
  struct Cluster {
    Ops ops;
    bool alive = true;
  };
  llvm::SmallSetVector<unsigned, 8> consumers(unsigned id) const;
  void forEachRead(unsigned id, llvm::function_ref<void(ir::Value source)> visit) const;

  ir::Function &function_;
  std::vector<Cluster> clusters_;
  llvm::DenseMap<const ir::Op *, unsigned> clusterOf_, position_;
  ir::SymbolValues symbols_;
};

} // namespace fusor::passes
