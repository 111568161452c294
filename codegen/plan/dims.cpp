#include "codegen/plan/dims.h"
#include "codegen/plan/access.h"
#include "ir/ops/reduction.h"

namespace fusor::codegen {

using namespace ir;

std::optional<llvm::SmallVector<std::pair<unsigned, unsigned>, 4>> unitReshape(llvm::ArrayRef<Dim> from,
                                                                               llvm::ArrayRef<Dim> to) {
  llvm::SmallVector<std::pair<unsigned, unsigned>, 4> pairs;
  unsigned i = 0, j = 0;
  for (;;) {
    while (i < from.size() && from[i].is(1)) ++i;
    while (j < to.size() && to[j].is(1)) ++j;
    if (i == from.size() || j == to.size()) break;
    if (from[i] != to[j]) return std::nullopt;
    pairs.push_back({i++, j++});
  }
  if (i != from.size() || j != to.size()) return std::nullopt;
  return pairs;
}

DimClasses::DimClasses(llvm::ArrayRef<Op *> ops) {
  for (Op *op : ops) {
    if (isLeaf(op->resultCount() ? op->result() : Value())) continue;
    if (op->is("reshape")) {
      if (auto pairs = unitReshape(op->operand(0u).shape(), op->result().shape()))
        for (auto [i, j] : *pairs) tie(op->operand(0u), i, op->result(), j);
    } else if (op->def().isElementwise() || op->is("broadcast")) {
      for (Value operand : op->operands()) tieBroadcast(operand, op->result());
    } else if (op->def().lowering == Lowering::reduction && op->def().attr("dims")) {
      auto reduced = reducedDims(op->site(), op->operand(0u).rank());
      bool keep = op->attr<bool>("keep");
      for (unsigned i = 0, j = 0; i < reduced.size(); ++i) {
        if (!reduced[i])
          tie(op->operand(0u), i, op->result(), j++);
        else if (keep)
          ++j;
      }
    }
  }
}

unsigned DimClasses::node(Value value, unsigned dim) {
  auto [it, isNew] = nodes_.try_emplace({value.def(), dim}, parent_.size());
  if (isNew) parent_.push_back(parent_.size());
  return it->second;
}

unsigned DimClasses::root(unsigned n) const {
  while (parent_[n] != n) n = parent_[n] = parent_[parent_[n]];
  return n;
}

void DimClasses::tie(Value a, unsigned i, Value b, unsigned j) {
  if (a.shape()[i].is(1) || b.shape()[j].is(1)) return;
  parent_[root(node(a, i))] = root(node(b, j));
}

void DimClasses::tieBroadcast(Value operand, Value result) {
  unsigned shift = result.rank() - operand.rank();
  for (unsigned i = 0; i < operand.rank(); ++i) tie(operand, i, result, i + shift);
}

bool DimClasses::setDomain(Value domain) {
  for (unsigned i = 0; i < domain.rank(); ++i)
    if (!domain.shape()[i].is(1) && !domainOfRoot_.try_emplace(root(node(domain, i)), i).second) return false;
  return true;
}

std::optional<int> DimClasses::domainDim(Value value, unsigned i) const {
  if (value.shape()[i].is(1)) return -1;
  auto it = nodes_.find({value.def(), i});
  if (it == nodes_.end()) return std::nullopt;
  auto found = domainOfRoot_.find(root(it->second));
  if (found == domainOfRoot_.end()) return std::nullopt;
  return found->second;
}

} // namespace fusor::codegen
