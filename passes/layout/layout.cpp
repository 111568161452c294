#include "passes/layout/layout.h"
#include "ir/graph/builder.h"
#include "ir/graph/clone.h"
#include "ir/ops/reduction.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::passes {

using namespace ir;

namespace {

bool isReadThrough(const Op &op) {
  return op.is("split") || op.is("slice") || op.is("transpose") || op.is("broadcast");
}

// One copy of `op` per reading op; the op itself serves the first. A copy costs nothing when its reader takes it in.
bool splitByReader(Op &op) {
  llvm::SmallVector<Op *, 4> readers;
  for (Value result : op.results())
    for (Op *user : result.users())
      if (!llvm::is_contained(readers, user)) readers.push_back(user);
  bool changed = false;
  for (Op *reader : llvm::drop_begin(readers, readers.empty() ? 0 : 1)) {
    if (reader->def().isTerminator) continue;
    ValueMap map;
    Op *copy = cloneInto(*op.block(), op, map, &*std::next(op.getIterator()));
    for (unsigned i = 0; i < reader->operands().size(); ++i)
      if (Value operand = reader->operand(i); operand && operand.op() == &op)
        reader->setOperand(i, copy->result(operand.index()));
    changed = true;
  }
  return changed;
}

// The dims that are reduced and not of size 1, and whether they are leading, or the last alone: what a loop can do as
// it is.
bool isLoopReduction(const std::vector<bool> &reduced, llvm::ArrayRef<Dim> shape) {
  llvm::SmallVector<bool, 6> dims;
  for (unsigned i = 0; i < reduced.size(); ++i)
    if (!shape[i].is(1)) dims.push_back(reduced[i]);
  unsigned count = llvm::count(dims, true);
  bool leading = llvm::all_of(llvm::makeArrayRef(dims).take_front(count), [](bool r) { return r; });
  return leading || (count == 1 && dims.back());
}

// Reduced dims to the end in one dim, then a reduction over that.
bool canonicalizeReduction(Op &op) {
  if (op.def().lowering != Lowering::reduction || !op.def().attr("dims")) return false;
  Value x = op.operand(0u);
  auto reduced = reducedDims(op.site(), x.rank());
  if (isLoopReduction(reduced, x.shape())) return false;
  Builder builder(op);
  builder.setLocation(op.location());
  std::vector<int64_t> perm;
  Shape kept;
  Dim merged = 1;
  for (unsigned i = 0; i < x.rank(); ++i)
    if (!reduced[i]) perm.push_back(i), kept.push_back(x.shape()[i]);
  for (unsigned i = 0; i < x.rank(); ++i)
    if (reduced[i]) perm.push_back(i), merged = merged * x.shape()[i];
  if (!llvm::is_sorted(perm)) x = builder.op("transpose", {x}, {{"perm", perm}});
  kept.push_back(merged);
  x = builder.op("reshape", {x}, {{"shape", kept}});
  Value sum = builder.op(op.name(), {x}, {{"dims", std::vector<int64_t>{-1}}});
  if (sum.type() != op.result().type()) sum = builder.op("reshape", {sum}, {{"shape", op.result().type().shape}});
  sum.setName(op.result().name());
  op.result().replaceAllUsesWith(sum);
  op.erase();
  return true;
}

} // namespace

llvm::Expected<bool> layout(Module &module, PassContext &context) {
  bool changed = false;
  for (const auto &function : module.functions()) {
    auto ops = function->block().opPointers();
    for (Op *op : llvm::reverse(ops)) { // readers first: a copy of a transpose is one more reader of the split it reads
      if (isReadThrough(*op))
        changed |= splitByReader(*op);
      else
        changed |= canonicalizeReduction(*op);
    }
  }
  return changed;
}

} // namespace fusor::passes
