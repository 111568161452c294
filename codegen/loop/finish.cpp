// The second kernel of sums over rows: adds the chunks' partial sums in a fixed order, then runs what follows from them
// (an average, an update, a cast) over the columns, or once for scalars.
#include "codegen/loop/emit_loop.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace fusor::codegen {

using namespace ir;

namespace {
constexpr unsigned kThreads = 512; // as partials.cuh has them
constexpr unsigned kColumns = 16;  // of a block
} // namespace

void emitFinish(LoopJob &job, const Count &columnParts, const Count &scalarParts) {
  const LoopPlan &plan = job.plan;
  KernelBuilder k(job.body, job.set, "finish");
  k.use("partials.cuh");
  LoopText text(k, plan, 1);
  CodeWriter &w = k.code();
  text.setWriter(w);
  text.setPlace({"0", "c", ""});

  bool hasColumns = llvm::any_of(plan.finish, [](const LoopStep &s) { return s.span == Span::column; });
  auto define = [&](const LoopStep &step, const std::string &total) {
    DType type = step.result.dtype();
    std::string variable = text.variableFor(step.result, Span::scalar);
    w.noted(llvm::formatv("const {0} {1} = {2};", variableType(type), variable, fromAccumulator(total, type)).str(),
            step.result.type().str());
    text.bind(step.result, variable);
  };
  auto isLike = [&](const LoopStep &a, const LoopStep &b) {
    const RowsSum &x = plan.sums[a.sumIndex], &y = plan.sums[b.sumIndex];
    return x.span == y.span && reducer(*x.op) == reducer(*y.op) &&
           accumulatorType(x.of.dtype()) == accumulatorType(y.of.dtype());
  };
  // Column sums of one kind share the barriers and wait for memory once.
  auto columnTotals = [&](llvm::ArrayRef<const LoopStep *> group) {
    const RowsSum &first = plan.sums[group.front()->sumIndex];
    llvm::StringRef type = accumulatorType(first.of.dtype());
    std::string parts = k.names().make("parts"), totals = k.names().make("totals"), list;
    for (const LoopStep *step : group) list += (list.empty() ? "" : ", ") + job.partials(k, step->sumIndex, true);
    w.line("const {0} *const {1}[{2}] = {{{3}};", type, parts, group.size(), list);
    w.line("{0} {1}[{2}];", type, totals, group.size());
    w.line("columnTotals<{0}, {1}>({2}, {3}, {4}, c, exists, {5});", reducer(*first.op), kColumns, parts,
           k.count(columnParts), k.dim(plan.columns), totals);
    for (unsigned i = 0; i < group.size(); ++i) define(*group[i], totals + "[" + std::to_string(i) + "]");
  };

  if (hasColumns) {
    w.line("const i64 c = (i64)blockIdx.x * {0} + threadIdx.x % {0}; // the block shares {0} columns", kColumns);
    w.line("const bool exists = c < {0};", k.dim(plan.columns));
  }
  w.raw("// the sums: barriers inside, so for all threads");
  llvm::SmallPtrSet<const LoopStep *, 4> done;
  for (const LoopStep &step : plan.finish) {
    if (step.kind != LoopStep::Kind::sum || done.contains(&step)) continue;
    const RowsSum &sum = plan.sums[step.sumIndex];
    if (sum.span == Span::scalar) {
      define(step, llvm::formatv("scalarTotal<{0}>({1}, {2})", reducer(*sum.op), job.partials(k, step.sumIndex, true),
                                 k.count(scalarParts))
                       .str());
      continue;
    }
    llvm::SmallVector<const LoopStep *, 4> group;
    for (const LoopStep &other : plan.finish)
      if (other.kind == LoopStep::Kind::sum && isLike(step, other)) group.push_back(&other);
    columnTotals(group);
    done.insert(group.begin(), group.end());
  }
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
    auto columns = w.block("if (exists && threadIdx.x < {0})", kColumns);
    run(Span::column);
    for (const LoopStore &store : plan.finishStores)
      if (store.span == Span::column) text.storeScalar(store);
  }
  Count grid = hasColumns ? Count::ceilDiv(plan.columns, kColumns) : Count(1);
  k.finish({.grid = grid,
            .block = kThreads,
            .note = "adds " + columnParts.str() + " partial results",
            .blocksTogether = 2}); // registers for many loads on their way: there are few blocks anyway
}

} // namespace fusor::codegen
