#include "codegen/plan/access.h"
#include "codegen/plan/anchors.h"

namespace fusor::codegen {

using namespace ir;

namespace {

using Operand = ContractionPlan::Operand;

// A GEMM reads its operands as they lie in memory: an input, perhaps under another shape.
llvm::Expected<Operand> operandOf(Value v, bool transposed) {
  if (!isLeaf(v))
    return opError("an operand of the GEMM, {0}, would have to be computed in its cluster", v.type().str());
  auto access = leafAccess(v);
  if (!access) return access.takeError();
  if (access->gather || access->offset != Dim(0) || access->strides != rowMajorStrides(v.shape()))
    return opError("an operand of the GEMM, {0}, is not contiguous", v.type().str());
  return Operand{access->input, v.dtype(), transposed, v.rank() ? v.shape().back() : Dim(1), 0};
}

llvm::Error planOperands(const Op &op, ContractionPlan &plan) {
  auto assign = [&](Operand &into, unsigned i, bool transposed) -> llvm::Error {
    auto operand = operandOf(op.operand(i), transposed);
    if (!operand) return operand.takeError();
    into = *operand;
    return llvm::Error::success();
  };
  auto a = op.operand(0u).shape(), b = op.operand(1).shape();
  if (op.is("linear")) { // x [rows, K] x weight [N, K]^T
    plan.m = product(a.drop_back()), plan.k = a.back(), plan.n = b[0];
    if (auto error = assign(plan.a, 0, false)) return error;
    return assign(plan.b, 1, true);
  }
  if (op.is("linear_input_grad")) { // dy [rows, N] x weight [N, K]
    plan.m = product(a.drop_back()), plan.k = a.back(), plan.n = b[1];
    if (auto error = assign(plan.a, 0, false)) return error;
    return assign(plan.b, 1, false);
  }
  if (op.is("linear_weight_grad")) { // dy [rows, N]^T x x [rows, K]
    plan.m = a.back(), plan.k = product(a.drop_back()), plan.n = b.back();
    if (auto error = assign(plan.a, 0, true)) return error;
    return assign(plan.b, 1, false);
  }
  bool ta = op.attr<bool>("trans_a"), tb = op.attr<bool>("trans_b");
  if (auto error = assign(plan.a, 0, ta)) return error;
  if (auto error = assign(plan.b, 1, tb)) return error;
  llvm::ArrayRef<Dim> aLead = a.drop_back(2), bLead = b.drop_back(2), lead = op.result().shape().drop_back(2);
  plan.m = a[a.size() - (ta ? 1 : 2)], plan.k = a[a.size() - (ta ? 2 : 1)], plan.n = b[b.size() - (tb ? 2 : 1)];
  if (product(bLead).is(1) && !ta) { // one B for all: its batch becomes rows of A
    plan.m = plan.m * product(aLead);
    return llvm::Error::success();
  }
  plan.batch = product(lead);
  for (auto [operand, own, matrix] : {std::tuple{&plan.a, aLead, plan.m * plan.k}, {&plan.b, bLead, plan.k * plan.n}}) {
    if (product(own).is(1)) continue;
    if (product(own) != plan.batch)
      return opError("leading dims [{0}] that broadcast in part are no batched GEMM", str(own));
    operand->batchStride = matrix;
  }
  return llvm::Error::success();
}

} // namespace

llvm::Expected<ContractionPlan> planContraction(const FlatCluster &cluster) {
  if (!cluster.anchor || cluster.anchor->def().lowering != Lowering::contraction)
    return opError("there is no GEMM in the cluster");
  ContractionPlan plan;
  if (auto error = planOperands(*cluster.anchor, plan)) return error;
  auto epilogue = planLoop(cluster, cluster.anchor->result());
  if (!epilogue) return epilogue.takeError();
  plan.epilogue = std::move(*epilogue);
  return plan;
}

} // namespace fusor::codegen
