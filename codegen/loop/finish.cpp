// The second kernel of sums over rows: adds the chunks' partial sums in a fixed order, then runs what follows from them
// (an average, an update, a cast) over the columns, or once for scalars.
#include "codegen/loop/emit_loop.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::codegen {

using namespace ir;

void emitFinish(LoopJob &job, const Count &columnParts, const Count &scalarParts) {
  const LoopPlan &plan = job.plan;
  KernelBuilder k(job.body, job.set, "finish");
  k.use("partials.cuh");
  LoopText text(k, plan, 1);
  CodeWriter &w = k.code();
  text.setWriter(w);
  text.setPlace({"0", "c", ""});

  bool hasColumns = llvm::any_of(plan.finish, [](const LoopStep &s) { return s.span == Span::column; });
  auto total = [&](const LoopStep &step) {
    const RowsSum &sum = plan.sums[step.sumIndex];
    std::string partials = job.partials(k, step.sumIndex, true);
    std::string variable = text.variableFor(step.result, Span::scalar);
    std::string call =
        sum.span == Span::column
            ? llvm::formatv("columnTotal<{0}>({1}, {2}, {3}, c, exists)", reducer(*sum.op), partials,
                            k.count(columnParts), k.dim(plan.columns))
                  .str()
            : llvm::formatv("scalarTotal<{0}>({1}, {2})", reducer(*sum.op), partials, k.count(scalarParts)).str();
    DType type = step.result.dtype();
    w.noted(llvm::formatv("const {0} {1} = {2};", variableType(type), variable, fromAccumulator(call, type)).str(),
            step.result.type().str());
    text.bind(step.result, variable);
  };

  if (hasColumns) {
    w.raw("const i64 c = (i64)blockIdx.x * 32 + threadIdx.x % 32; // eight warps share 32 columns");
    w.line("const bool exists = c < {0};", k.dim(plan.columns));
  }
  w.raw("// the sums: barriers inside, so for all threads");
  for (const LoopStep &step : plan.finish)
    if (step.kind == LoopStep::Kind::sum) total(step);
  for (const LoopStep &step : plan.finish) text.prepare(step);

  auto run = [&](Span span) {
    for (const LoopStep &step : plan.finish) {
      if (step.span != span || step.kind == LoopStep::Kind::sum) continue;
      if (step.kind == LoopStep::Kind::load)
        text.load(step);
      else
        text.compute(step);
    }
  };
  run(Span::scalar);
  for (const LoopStore &store : plan.finishStores) {
    if (store.span != Span::scalar) continue;
    auto once = w.block("if (blockIdx.x == 0 && threadIdx.x == 0)");
    text.storeScalar(store);
  }
  if (hasColumns) {
    auto columns = w.block("if (exists && threadIdx.x < 32)");
    run(Span::column);
    for (const LoopStore &store : plan.finishStores)
      if (store.span == Span::column) text.storeScalar(store);
  }
  Count grid = hasColumns ? Count::ceilDiv(plan.columns, 32) : Count(1);
  k.finish({grid, 256, "adds " + columnParts.str() + " partial results"});
}

} // namespace fusor::codegen
