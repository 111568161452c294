// Which dim of a loop's domain each dim of each value is.
//
// Problem: in a body, mean(x, -1) of [B, T, C] may be kept as [B, T, 1] or be [B, T], targets [B, T] are reshaped to
// [B, T, 1], a bias is [C]. Shapes alone do not say that the T of [B, T] is the T of the domain (T may equal C). So
// every op ties dims of its operands to dims of its result, ties are merged (union-find), and a class of dims is one
// dim of the domain.
#pragma once
#include "codegen/plan/cluster.h"
#include "llvm/ADT/DenseMap.h"

namespace fusor::codegen {

class DimClasses {
public:
  /// Ties dims through the ops in `ops`, which leaves alone where an operand is only read through (movement ops on
  /// inputs).
  explicit DimClasses(llvm::ArrayRef<ir::Op *> ops);
  /// Numbers the classes by the dims of `domain`. False when two dims of the domain are one class (x + transpose(x)).
  bool setDomain(ir::Value domain);
  /// The domain dim of dim `i` of `value`; -1 for a dim of size 1; absent when it belongs to no dim of the domain.
  std::optional<int> domainDim(ir::Value value, unsigned i) const;

private:
  using Key = std::pair<ir::ValueDef *, unsigned>;
  unsigned node(ir::Value value, unsigned dim);
  unsigned root(unsigned n) const;
  void tie(ir::Value a, unsigned i, ir::Value b, unsigned j);
  void tieBroadcast(ir::Value operand, ir::Value result);
  mutable std::vector<unsigned> parent_;
  llvm::DenseMap<Key, unsigned> nodes_;
  llvm::DenseMap<unsigned, int> domainOfRoot_;
};

/// For a reshape that only adds or removes dims of size 1: pairs (operand dim, result dim). Absent for any other
/// reshape.
std::optional<llvm::SmallVector<std::pair<unsigned, unsigned>, 4>> unitReshape(llvm::ArrayRef<ir::Dim> from,
                                                                               llvm::ArrayRef<ir::Dim> to);

} // namespace fusor::codegen
