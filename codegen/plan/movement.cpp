#include "codegen/plan/access.h"
#include "codegen/plan/anchors.h"

namespace fusor::codegen {

using namespace ir;

namespace {

// out[i] = in[access(i)] for every index of `out`.
llvm::Error copyOut(MovementPlan &plan, Value out, unsigned output) {
  auto access = leafAccess(out);
  if (!access) return access.takeError();
  if (access->gather) return opError("a gather is a loop, not a strided copy");
  plan.copies.push_back({access->input, Shape(out.shape().begin(), out.shape().end()), access->offset, 0,
                         access->strides, rowMajorStrides(out.shape())});
  plan.outputs.push_back(output);
  return llvm::Error::success();
}

// out[offset + i . strides] = in[i] for every index of the operand.
void copyIn(MovementPlan &plan, Value in, Dim offset, llvm::SmallVector<Dim, 4> strides) {
  plan.copies.push_back({in.index(), Shape(in.shape().begin(), in.shape().end()), 0, offset,
                         rowMajorStrides(in.shape()), std::move(strides)});
  plan.outputs.push_back(0);
}

Dim dot(const Shape &a, llvm::ArrayRef<Dim> b) {
  Dim sum = 0;
  for (unsigned i = 0; i < a.size(); ++i) sum = sum + a[i] * b[i];
  return sum;
}

llvm::Error planOp(MovementPlan &plan, const Op &op) {
  Value out = op.result();
  auto strides = rowMajorStrides(out.shape());
  for (Value operand : op.operands())
    if (!operand.isArgument()) return opError("{0} reads from memory", op.name());
  if (op.is("pad")) {
    plan.fill = op.attr<double>("value");
    copyIn(plan, op.operand(0u), dot(op.attr<Shape>("before"), strides), strides);
  } else if (op.is("slice_grad")) {
    plan.fill = 0;
    Dim offset = dot(op.attr<Shape>("start"), strides);
    const auto &step = op.attr<std::vector<int64_t>>("step");
    for (unsigned i = 0; i < step.size(); ++i) strides[i] = strides[i] * Dim(step[i]);
    copyIn(plan, op.operand(0u), offset, strides);
  } else if (op.is("concat")) {
    unsigned axis = op.site().axis("axis", out.rank());
    Dim before = 0;
    for (Value part : op.operands()) {
      copyIn(plan, part, before * strides[axis], strides);
      before = before + part.shape()[axis];
    }
  } else if (op.is("cache_write")) {
    plan.startsFrom = op.operand(0u).index();
    copyIn(plan, op.operand(1), 0, strides);
    plan.dynamicOffset = op.operand(2).index();
    plan.dynamicDim = 1;
    plan.dynamicStride = strides[1];
    plan.dynamicLimit = out.shape()[1];
  } else {
    return opError("{0} is no movement", op.name());
  }
  return llvm::Error::success();
}

} // namespace

llvm::Expected<MovementPlan> planMovement(const FlatCluster &cluster) {
  MovementPlan plan;
  auto returns = cluster.function->returns();
  for (unsigned i = 0; i < returns.size(); ++i) {
    Value out = returns[i].value;
    if (isLeaf(out)) {
      if (auto error = copyOut(plan, out, i)) return error;
      continue;
    }
    if (returns.size() != 1) return opError("{0} is a kernel of its own", out.op()->name());
    if (auto error = planOp(plan, *out.op())) return error;
  }
  return plan;
}

std::optional<TransposePlan> planTranspose(const MovementPlan &plan) {
  if (plan.fill || plan.startsFrom || plan.copies.size() != 1) return std::nullopt;
  const StridedCopy &copy = plan.copies.front();
  unsigned rank = copy.extents.size();
  if (rank < 2 || rank > 3 || !copy.inStrides[rank - 2].is(1) || copy.outStrides != rowMajorStrides(copy.extents))
    return std::nullopt;
  TransposePlan t;
  t.input = copy.input, t.output = plan.outputs.front();
  t.columns = copy.extents[rank - 2], t.rows = copy.extents[rank - 1];
  t.offset = copy.inOffset, t.inRow = copy.inStrides[rank - 1];
  if (rank == 3) t.batch = copy.extents[0], t.inBatch = copy.inStrides[0];
  bool isMatrix = !t.rows.is(1) && !t.columns.is(1) && !t.inRow.is(0) && !t.inRow.is(1);
  return isMatrix ? std::optional(std::move(t)) : std::nullopt;
}

} // namespace fusor::codegen
