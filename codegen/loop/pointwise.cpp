#include "codegen/loop/emit_loop.h"
#include "llvm/ADT/MapVector.h"

namespace fusor::codegen {

using namespace ir;

namespace {
constexpr int kBlock = 256;
constexpr int64_t kMostBlocks = 1 << 20; // beyond that, threads take several turns
} // namespace

// for (i = my first element; i < count; i += all threads) { load; compute; store }
void emitPointwise(LoopJob &job) {
  const LoopPlan &plan = job.plan;
  KernelBuilder k(job.body, job.set);
  int width = vectorWidth(plan, k);
  LoopText text(k, plan, width);
  job.prepare(k, text);
  Dim count = plan.rows * plan.columns;
  Place place{"row", "c", "i"};
  if (plan.columns.is(1)) place.row = "i";
  if (plan.rows.is(1)) place.column = "i";
  text.setPlace(place);

  CodeWriter loop(4), prepare(2);
  text.setWriter(prepare);
  for (const LoopStep &step : plan.main) text.prepare(step);
  text.setWriter(loop);
  loop.raw("// load");
  for (const LoopStep &step : plan.main)
    if (step.kind == LoopStep::Kind::load) text.load(step);
  loop.raw("// compute");
  llvm::MapVector<ValueDef *, std::string> arrays; // of wide stored values
  for (const LoopStore &store : plan.stores) {
    if (!text.isWide(store.span) || arrays.count(store.value.def())) continue;
    if (text.isBound(store.value)) { // stored as it was loaded
      arrays[store.value.def()] = llvm::StringRef(text.spell(store.value)).drop_back(3).str();
      continue;
    }
    std::string array = text.variableFor(store.value, store.span);
    loop.line("{0} {1}[{2}];", variableType(store.value.dtype()), array, width);
    text.assignTo(store.value, array + "[e]");
    arrays[store.value.def()] = array;
  }
  auto isComputed = [](const LoopStep &step) { return step.kind != LoopStep::Kind::load; };
  for (const LoopStep &step : plan.main)
    if (isComputed(step) && !text.isWide(step.span)) text.compute(step);
  {
    auto lanes = text.laneLoop();
    for (const LoopStep &step : plan.main)
      if (isComputed(step) && text.isWide(step.span)) text.compute(step);
  }
  loop.raw("// store");
  for (const LoopStore &store : plan.stores)
    if (text.isWide(store.span))
      text.storeArray(store, arrays[store.value.def()]);
    else
      text.storeScalar(store);

  CodeWriter &w = k.code();
  w.append(prepare.text());
  w.line("const i64 count = {0}, step = (i64)gridDim.x * {1};", k.dim(count), kBlock * width);
  {
    std::string first = llvm::formatv("((i64)blockIdx.x * {0} + threadIdx.x)", kBlock).str();
    if (width > 1) first += llvm::formatv(" * {0}", width);
    auto body = w.block("for (i64 i = {0}; i < count; i += step)", first);
    if (text.usedRow && place.row == "row") w.line("const i64 row = i / {0};", k.dim(plan.columns));
    if (text.usedColumn && place.column == "c") w.line("const i64 c = i % {0};", k.dim(plan.columns));
    w.append(loop.text());
  }
  std::string note =
      width > 1 ? llvm::formatv("{0} elements a thread at once", width).str() : "one element a thread at once";
  k.finish({Count::ceilDiv(count, kBlock * width).atMost(kMostBlocks), kBlock, note});
}

} // namespace fusor::codegen
