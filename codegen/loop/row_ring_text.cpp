#include "codegen/loop/row_ring_text.h"
#include "codegen/emit/literal.h"

namespace fusor::codegen {

using namespace ir;

RowRingText::RowRingText(KernelBuilder &k, LoopText &text, const LoopPlan &plan, const RowShape &shape,
                         OverColumns overColumns)
    : k_(k), text_(text), plan_(plan), shape_(shape), overColumns_(std::move(overColumns)), early_(fullLoads(plan)) {
  if (shape.lateInTheirRow) late_ = lateLoads(plan);
  llvm::erase_if(early_, [&](const LoopStep *load) { return isLate(*load); });
}

// Two rows of a full input, or one.
int64_t RowRingText::bytesOf(const LoopStep &load) const {
  int64_t row = byteSize(load.result.dtype()) * text_.width() * shape_.turns * shape_.blockThreads();
  return isLate(load) ? row : 2 * row;
}

int64_t RowRingText::bytes() const {
  int64_t bytes = 0, accumulator = 0;
  for (const LoopStep *step : fullLoads(plan_)) bytes += bytesOf(*step);
  if (!shape_.isWarp) return bytes;
  for (const RowsSum &sum : plan_.sums) accumulator = std::max<int64_t>(accumulator, accumulatorBytes(sum.of.dtype()));
  // In the end the warps' sums meet in the same memory.
  return std::max(bytes, shape_.blockThreads() * shape_.turns * text_.width() * accumulator);
}

void RowRingText::start(llvm::StringRef memory) {
  k_.use("row_ring.cuh");
  int64_t at = 0;
  for (const LoopStep *step : fullLoads(plan_)) {
    std::string ring = k_.names().make(identifierFrom(step->result.name()) + "_rows");
    w().line("const RowRing<{0}, {1}, {2}, {3}> {4}({5}{6});", storageType(step->result.dtype()), text_.width(),
             shape_.turns, shape_.blockThreads(), ring, memory, at ? " + " + std::to_string(at) : "");
    at += bytesOf(*step);
    rings_[step] = ring;
  }
  for (const LoopStep *step : rowLoads()) {
    std::string next = k_.names().make(identifierFrom(step->result.name()) + "_next");
    w().line("{0} {1} = {2};", variableType(step->result.dtype()), next, constantText(0, step->result.dtype()));
    next_[step] = next;
  }
  w().raw("int stage = 0;");
  w().line("const i64 first = firstRow{0};", shape_.isWarp ? " + warp" : "");
  fetchNext("first", "0");
}

void RowRingText::fetch(llvm::ArrayRef<const LoopStep *> loads, llvm::StringRef row, llvm::StringRef stage) {
  Place here = text_.place(), there = here;
  there.row = row.str();
  text_.setPlace(there);
  overColumns_([&] {
    for (const LoopStep *step : loads)
      w().line("{0}.fetch({1}, {2}, {3});", rings_[step], stage, shape_.turns > 1 ? "j" : "0", text_.addressOf(*step));
  });
  text_.setPlace(here);
}

// Row `row`, where it exists, into `stage`; and what it has one value of.
void RowRingText::fetchNext(llvm::StringRef row, llvm::StringRef stage) {
  Place here = text_.place(), there = here;
  there.row = row.str();
  {
    auto exists = w().block("if ({0} < endRow)", row);
    fetch(early_, row, stage);
    text_.setPlace(there);
    for (const LoopStep *step : rowLoads()) text_.loadInto(*step, next_[step]);
    text_.setPlace(here);
  }
  w().raw("commitCopies();");
}

void RowRingText::load() {
  w().raw("// load: the next row sets out, this one arrives");
  for (const LoopStep *step : rowLoads()) {
    std::string now = text_.variableFor(step->result, Span::row);
    w().line("const {0} {1} = {2};", variableType(step->result.dtype()), now, next_[step]);
    text_.bind(step->result, now);
  }
  awaitsLate_ = !late_.empty();
  if (awaitsLate_) {
    fetch(late_, "row", "0");
    w().raw("commitCopies();");
  }
  int64_t step = shape_.isWarp ? shape_.warps : 1;
  if (shape_.tileRows)
    w().line("const i64 next = row + {0} < tileRow + {1} ? row + {0} : row + jump - {2};", step, shape_.tileRows,
             shape_.tileRows - step);
  else
    w().line("const i64 next = row + {0};", step);
  fetchNext("next", "stage ^ 1");
  w().line("waitForCopies<{0}>();", awaitsLate_ ? 2 : 1);
}

void RowRingText::await(const RowSchedule::Values &needed) {
  if (!awaitsLate_ || llvm::none_of(late_, [&](auto *load) { return needed.contains(load->result.def()); })) return;
  w().raw("waitForCopies<1>();");
  awaitsLate_ = false;
}

void RowRingText::read(const LoopStep &step) {
  std::string array = text_.variableFor(step.result, step.span);
  w().line("{0} {1}[{2}];", variableType(step.result.dtype()), array, text_.width());
  w().line("{0}.read({1}, {2}, {3});", rings_[&step], isLate(step) ? "0" : "stage", shape_.turns > 1 ? "j" : "0",
           array);
  text_.bind(step.result, array + "[e]");
}

// Values of a row, e.g. its mean: they are fetched a row ahead.
llvm::SmallVector<const LoopStep *, 4> RowRingText::rowLoads() const {
  llvm::SmallVector<const LoopStep *, 4> loads;
  for (const LoopStep &step : plan_.main)
    if (step.kind == LoopStep::Kind::load && step.span == Span::row && !step.access.gather) loads.push_back(&step);
  return loads;
}

} // namespace fusor::codegen
