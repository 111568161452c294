#include "codegen/loop/emit_loop.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::codegen {

using namespace ir;

llvm::Error emitLoop(const FusionBody &body, const LoopPlan &plan, const Target &target, KernelSet &set,
                     std::optional<ProductPlace> product) {
  for (Value argument : body.block().arguments())
    if (argument.type().granularity != Granularity::none || argument.dtype() == DType::f8e8m0)
      return opError("no kernel reads {0}", argument.type().str());
  LoopJob job{body, plan, set, target.tier, product};
  findInPlace(body, plan, set);
  switch (plan.kind()) {
  case ClusterKind::row: emitRow(job); break;
  case ClusterKind::column: emitColumn(job); break;
  default: plan.hasTransposedStore() ? emitColumn(job) : emitPointwise(job); break;
  }
  return llvm::Error::success();
}

void findInPlace(const FusionBody &body, const LoopPlan &plan, KernelSet &set) {
  for (const Overwrite &pair : overwritable(plan, body.block())) set.inPlace.push_back({pair.input, pair.output});
}

void LoopJob::prepare(KernelBuilder &k, LoopText &text) const {
  if (!product) return;
  text.setAccumulator("", product->isOutput
                              ? k.output(product->index)
                              : k.workspace(product->index, storageType(product->dtype), "product", true));
}

void LoopJob::addPartials(const Count &chunks) {
  firstPartials = set.workspaces.size();
  for (const RowsSum &sum : plan.sums) {
    Count elements = sum.span == Span::column ? chunks * Count(plan.columns) : chunks;
    set.workspaces.push_back(elements * Count(accumulatorBytes(sum.of.dtype())));
  }
}

std::string LoopJob::partials(KernelBuilder &k, unsigned sum, bool isConst) const {
  Value v = plan.sums[sum].result;
  return k.workspace(firstPartials + sum, accumulatorType(plan.sums[sum].of.dtype()), v.name().str() + "_partials",
                     isConst);
}

} // namespace fusor::codegen
