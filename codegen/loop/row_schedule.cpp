#include "codegen/loop/row_schedule.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::codegen {

using namespace ir;

namespace {

llvm::ArrayRef<Value> operandsOf(const LoopStep &step) {
  if (!step.op || step.kind == LoopStep::Kind::random) return {}; // the seed is loaded by itself
  return step.op->operands();
}

// Cheaper to compute again than to keep in a register.
bool isCheap(const LoopStep &step) {
  if (step.kind == LoopStep::Kind::iota || step.kind == LoopStep::Kind::spread) return true;
  if (step.kind != LoopStep::Kind::formula) return false;
  static constexpr const char *cheap[] = {"add", "sub", "mul", "neg", "cast", "max", "min", "select", "abs",
                                          "eq",  "ne",  "lt",  "le",  "gt",   "ge",  "and", "or",     "not"};
  return llvm::any_of(cheap, [&](const char *name) { return step.op->is(name); });
}

} // namespace

RowSchedule::RowSchedule(const LoopPlan &plan, bool isPersistent, bool loadsInSweeps)
    : plan_(plan), isPersistent_(isPersistent), loadsInSweeps_(loadsInSweeps) {
  for (const LoopStep &step : plan_.main) {
    unsigned level = 0;
    steps_[step.result.def()] = &step;
    if (!isPersistent_ && step.kind == LoopStep::Kind::rowReduce) findExpSum(step);
    for (Value operand : operandsOf(step)) level = std::max(level, this->level(operand));
    if (step.kind == LoopStep::Kind::rowReduce) level = this->level(reduced(step)) + 1;
    level_[step.result.def()] = level;
    last_ = std::max(last_, level);
  }
  for (unsigned at = last_ + 1; isPersistent_ && at-- > 0;) {
    Values steps;
    for (Value v : wantedBy(at)) collect(v, at, steps, &kept_);
  }
}

// sum(exp(x - reduce_max(x)))
void RowSchedule::findExpSum(const LoopStep &sum) {
  auto formula = [&](Value v, const char *name) -> const LoopStep * {
    const LoopStep *step = steps_.lookup(v.def());
    return step && step->kind == LoopStep::Kind::formula && step->op->is(name) ? step : nullptr;
  };
  if (!sum.op->is("sum") || sum.result.dtype() != DType::f32) return;
  const LoopStep *exp = formula(sum.op->operand(0u), "exp");
  const LoopStep *difference = exp ? formula(exp->op->operand(0u), "sub") : nullptr;
  if (!difference) return;
  const LoopStep *maximum = steps_.lookup(difference->op->operand(1).def());
  while (maximum && maximum->kind == LoopStep::Kind::spread) maximum = steps_.lookup(maximum->op->operand(0u).def());
  if (!maximum || maximum->kind != LoopStep::Kind::rowReduce || !maximum->op->is("reduce_max")) return;
  Value x = difference->op->operand(0u);
  if (maximum->op->operand(0u) != x || x.dtype() != DType::f32 || besideMaximum_.count(maximum)) return;
  maximumOf_[&sum] = maximum, besideMaximum_[maximum] = &sum;
}

Value RowSchedule::reduced(const LoopStep &reduction) const {
  const LoopStep *maximum = maximumOf_.lookup(&reduction);
  return (maximum ? maximum : &reduction)->op->operand(0u);
}

void RowSchedule::collect(Value v, unsigned at, Values &steps, Values *kept) const {
  const LoopStep *step = steps_.lookup(v.def());
  if (!step || !variesOverColumns(step->span) || steps.contains(v.def())) return;
  bool isFullLoad = step->kind == LoopStep::Kind::load && step->span == Span::full;
  if (isPersistent_ && isFullLoad && !loadsInSweeps_) return; // in registers
  if (isPersistent_ && level(v) < at && step->span == Span::full && !isFullLoad && !isCheap(*step)) {
    if (kept) kept->insert(v.def());
    return;
  }
  steps.insert(v.def());
  for (Value operand : operandsOf(*step)) collect(operand, at, steps, kept);
}

llvm::SmallVector<Value, 16> RowSchedule::wantedBy(unsigned at) const {
  llvm::SmallVector<Value, 16> wanted;
  for (const LoopStep &step : plan_.main)
    if (step.kind == LoopStep::Kind::rowReduce && level(reduced(step)) == at) wanted.push_back(reduced(step));
  for (const LoopStore &store : plan_.stores)
    if (variesOverColumns(store.span) && outputSweep(store.value) == at) wanted.push_back(store.value);
  for (const RowsSum &sum : plan_.sums)
    if (variesOverColumns(step(sum.of).span) && outputSweep(sum.of) == at) wanted.push_back(sum.of);
  for (const LoopStep &step : plan_.main)
    if (isKept(step.result) && level(step.result) == at) wanted.push_back(step.result);
  return wanted;
}

RowSchedule::Values RowSchedule::neededBy(unsigned at) const {
  Values steps;
  for (Value v : wantedBy(at)) collect(v, at, steps, nullptr);
  return steps;
}

} // namespace fusor::codegen
