#include "codegen/plan/access.h"
#include "codegen/plan/anchors.h"

namespace fusor::codegen {

using namespace ir;

llvm::Expected<ScatterPlan> planScatter(const FlatCluster &cluster) {
  if (!cluster.anchor || cluster.anchor->def().lowering != Lowering::scatter)
    return opError("there is no scatter in the cluster");
  const Op &op = *cluster.anchor;
  Value updates = op.operand(0u), indices = op.operand(1);
  if (updates.op() && updates.op()->is("cast")) updates = updates.op()->operand(0u); // read in its own type
  if (op.site().axis("axis", op.result().rank()) != 0) return opError("scatter_add along another axis than 0");
  if (!updates.isArgument() || !indices.isArgument())
    return opError("scatter_add reads its updates and indices from memory");
  ScatterPlan plan;
  plan.updates = updates.index(), plan.indices = indices.index();
  plan.updatesType = updates.dtype(), plan.indicesType = indices.dtype();
  plan.count = indices.type().elements();
  plan.rows = op.result().shape()[0];
  plan.columns = product(op.result().shape().drop_front());

  auto returns = cluster.function->returns();
  if (returns.size() != 1) return opError("scatter_add has one result, the cluster has {0}", returns.size());
  Value out = returns[0].value;
  plan.outputType = out.dtype();
  if (out.op() && out.op()->is("cast") && !isUnsaturatedCast(out.op()->site())) out = out.op()->operand(0u);
  if (out != op.result()) return opError("nothing but a cast can follow scatter_add in its kernel");
  return plan;
}

} // namespace fusor::codegen
