#include "codegen/scatter/emit_scatter.h"
#include "codegen/emit/scalar_text.h"
#include "codegen/plan/anchors.h"

namespace fusor::codegen {

using namespace ir;

llvm::Error emitScatter(const FusionBody &body, KernelSet &set) {
  auto planned = planScatter(body.flat);
  if (!planned) return planned.takeError();
  const ScatterPlan &plan = *planned;
  if (!isFloat(plan.updatesType) || plan.updatesType == DType::f64 || plan.outputType == DType::f64)
    return opError("the scatter kernels add floats of at most 32 bits, found {0}", name(plan.updatesType));

  unsigned first = set.workspaces.size();
  for (Dim elements : {plan.rows + Dim(1), plan.rows, plan.count, plan.count})
    set.workspaces.push_back(Count(elements * Dim(4)));
  auto work = [&](KernelBuilder &k, unsigned i, bool isConst) {
    static constexpr const char *names[] = {"offsets", "cursors", "unsorted", "positions"};
    return k.workspace(first + i, "u32", names[i], isConst);
  };
  {
    KernelBuilder k(body, set, "count");
    k.use("gather.cuh");
    k.code().line("gatherOffsets({0}, {1}, {2}, {3}, {4});", k.input(plan.indices), k.dim(plan.count), k.dim(plan.rows),
                  work(k, 0, false), work(k, 1, false));
    k.finish({1, 1024, "where the positions of each row of the table begin"});
  }
  {
    KernelBuilder k(body, set, "place");
    k.use("gather.cuh");
    k.code().line("gatherScatter({0}, {1}, {2}, {3}, {4});", k.input(plan.indices), k.dim(plan.count), k.dim(plan.rows),
                  work(k, 1, false), work(k, 2, false));
    k.finish({Count::ceilDiv(plan.count, 256), 256, "positions by row, in any order"});
  }
  {
    KernelBuilder k(body, set, "order");
    k.use("gather.cuh");
    k.code().line("gatherSort({0}, {1}, {2}, {3}, {4});", k.input(plan.indices), k.dim(plan.rows), work(k, 0, true),
                  work(k, 2, true), work(k, 3, false));
    k.finish({Count::ceilDiv(plan.count, 256), 256, "positions of a row ascending"});
  }
  KernelBuilder k(body, set, "add");
  k.use("gather.cuh");
  std::string out = k.output(0);
  k.code().line("const auto put = [=](i64 row, i64 column, float sum) {{ store({0} + row * {1} + column, sum); };", out,
                k.dim(plan.columns));
  k.code().line("gatherRowSums({0}, {1}, {2}, {3}, put);", k.input(plan.updates), k.dim(plan.columns), work(k, 0, true),
                work(k, 3, true));
  unsigned threads = 256;
  if (plan.columns.isConstant() && plan.columns.value() < 256)
    threads = std::max<int64_t>(32, (plan.columns.value() + 31) / 32 * 32);
  k.finish({Count(plan.rows), threads, "a block a row of the table"});
  return llvm::Error::success();
}

} // namespace fusor::codegen
