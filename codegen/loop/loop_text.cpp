#include "codegen/loop/loop_text.h"
#include "codegen/emit/literal.h"
#include "codegen/loop/index_text.h"
#include "ir/graph/bug.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::codegen {

using namespace ir;

namespace {

bool isMultiple(const Dim &dim, int64_t of) { return dim.is(0) || dim.divide(Dim(of)).has_value(); }

// Columns are walked through with stride 1, and every row begins at a multiple of `width`.
bool alignsTo(const LoopPlan &plan, const Access &access, int width) {
  llvm::ArrayRef<Dim> extents = plan.domain, strides = access.strides;
  auto columns = strideGroups(extents.drop_front(plan.rowDims), strides.drop_front(plan.rowDims));
  if (columns.size() != 1 || !columns[0].stride.is(1) || columns[0].extent != plan.columns) return false;
  for (const StrideGroup &group : strideGroups(extents.take_front(plan.rowDims), strides.take_front(plan.rowDims)))
    if (!isMultiple(group.stride, width)) return false;
  if (access.gather) {
    llvm::ArrayRef<Dim> at = access.gather->strides;
    if (!strideGroups(extents.drop_front(plan.rowDims), at.drop_front(plan.rowDims)).empty()) return false;
    if (!isMultiple(access.gather->rowStride, width)) return false;
  }
  return isMultiple(access.offset, width);
}

} // namespace

int vectorWidth(const LoopPlan &plan, const KernelBuilder &k) {
  if (!plan.columns.isConstant()) return 1;
  unsigned smallest = 16;
  int width = 1;
  auto consider = [&](const Access &access, Span span, DType type) {
    if (span != Span::full) return;
    smallest = std::min(smallest, byteSize(type));
    for (int w : {2, 4, 8})
      if (plan.columns.value() % w == 0 && alignsTo(plan, access, w)) width = std::max(width, w);
  };
  for (const LoopStep &step : plan.main)
    if (step.kind == LoopStep::Kind::load) consider(step.access, step.span, step.result.dtype());
  for (const LoopStore &store : plan.stores)
    if (!store.isTransposed) consider(store.access, store.span, store.value.dtype());
  return std::min<int>(width, std::max(1, std::min(8, 16 / static_cast<int>(smallest))));
}

std::string LoopText::spell(Value v) const {
  auto it = spelled_.find(v.def());
  if (it == spelled_.end()) FUSOR_BUG("a kernel uses %{0} before it is computed", v.name());
  return it->second;
}

std::string LoopText::variableFor(Value v, Span span) {
  std::string base = v.name().empty() ? (v.op() ? v.op()->name().str() : "x") : v.name().str();
  return k_.names().make(isWide(span) ? identifierFrom(base) + std::to_string(width_) : base);
}

bool LoopText::isVector(const Access &access) const { return width_ > 1 && alignsTo(plan_, access, width_); }

std::string LoopText::terms(const Dim &offset, llvm::ArrayRef<Dim> strides, llvm::StringRef lane,
                            llvm::ArrayRef<std::string> more) {
  llvm::SmallVector<std::string, 6> list;
  llvm::ArrayRef<Dim> extents = plan_.domain;
  if (!offset.is(0)) list.push_back(k_.dim(offset));
  size_t before = list.size();
  appendTerms(list, extents.take_front(plan_.rowDims), strides.take_front(plan_.rowDims), place_.row, k_);
  usedRow |= list.size() > before;
  before = list.size();
  appendTerms(list, extents.drop_front(plan_.rowDims), strides.drop_front(plan_.rowDims), column(lane), k_);
  usedColumn |= list.size() > before;
  list.append(more.begin(), more.end());
  return sumOf(list);
}

std::string LoopText::index(const Access &access, llvm::StringRef lane) {
  if (access.contiguous && !place_.flat.empty()) return lane.empty() ? place_.flat : place_.flat + " + " + lane.str();
  return terms(access.offset, access.strides, lane);
}

std::string LoopText::pointer(const Access &access) {
  if (access.input == kAccumulator) return accumulatorPointer_;
  return inputs_.empty() ? k_.input(access.input) : inputs_[access.input];
}

// A variable with the row a gather reads, -1 for none.
std::string LoopText::gatherRow(const LoopStep &step, llvm::StringRef lane) {
  const Access::Gather &gather = *step.access.gather;
  k_.use("index.cuh");
  std::string row = k_.names().make(step.result.name().str() + "_row");
  w().line("const i64 {0} = wrapIndex(load({1} + {2}), {3});", row, k_.input(gather.indices),
           terms(gather.offset, gather.strides, lane), k_.dim(gather.rows));
  return row;
}

void LoopText::load(const LoopStep &step) {
  Value v = step.result;
  if (step.access.input == kAccumulator && !accumulator_.empty()) return bind(v, accumulator_);
  DType type = typeOf(v);
  std::string variable = variableFor(v, step.span);
  if (isWide(step.span)) {
    w().line("{0} {1}[{2}];", variableType(type), variable, width_);
    loadInto(step, variable);
    return bind(v, variable + "[e]");
  }
  std::string p = pointer(step.access);
  if (step.access.gather) {
    std::string row = gatherRow(step, "");
    std::string at =
        terms(step.access.offset, step.access.strides, "", row + " * " + k_.dim(step.access.gather->rowStride));
    w().line("const {0} {1} = {2} < 0 ? {3} : load({4} + {5});", variableType(type), variable, row,
             constantText(0, type), p, at);
  } else {
    w().line("const {0} {1} = load({2} + {3});", variableType(type), variable, p, index(step.access));
  }
  bind(v, variable);
}

void LoopText::loadInto(const LoopStep &step, llvm::StringRef array) {
  std::string p = pointer(step.access);
  DType type = typeOf(step.result);
  if (!isWide(step.span)) { // `array` is one variable, or one element of an array of all the thread's columns
    if (step.access.gather) {
      std::string row = gatherRow(step, "");
      w().line("{0} = {1} < 0 ? {2} : load({3} + {4});", array, row, constantText(0, type), p,
               terms(step.access.offset, step.access.strides, "", row + " * " + k_.dim(step.access.gather->rowStride)));
    } else {
      w().line("{0} = load({1} + {2});", array, p, index(step.access));
    }
    return;
  }
  if (isVector(step.access)) {
    k_.use("vector.cuh");
    if (!step.access.gather) return w().line("loadVector({0} + {1}, {2});", p, index(step.access), array);
    std::string row = gatherRow(step, "");
    std::string zero = constantText(0, type);
    w().line("if ({0} >= 0)", row);
    w().line("  loadVector({0} + {1}, {2});", p,
             terms(step.access.offset, step.access.strides, "", row + " * " + k_.dim(step.access.gather->rowStride)),
             array);
    w().line("else");
    w().line("  for (int e = 0; e < {0}; ++e) {1}[e] = {2};", width_, array, zero);
    return;
  }
  auto lanes = laneLoop(); // scattered: one by one
  if (step.access.gather) {
    std::string row = gatherRow(step, "e");
    w().line("{0}[e] = {1} < 0 ? {2} : load({3} + {4});", array, row, constantText(0, type), p,
             terms(step.access.offset, step.access.strides, "e", row + " * " + k_.dim(step.access.gather->rowStride)));
  } else {
    w().line("{0}[e] = load({1} + {2});", array, p, index(step.access, "e"));
  }
}

std::optional<CodeWriter::Block> LoopText::laneLoop() {
  if (width_ == 1) return std::nullopt;
  w().raw("#pragma unroll");
  return w().block("for (int e = 0; e < {0}; ++e)", width_);
}

void LoopText::define(Value v, DType type, std::string text) {
  if (auto it = targets_.find(v.def()); it != targets_.end()) {
    std::string target = it->second;
    w().noted(target + " = " + text + ";", inMargin(v));
    return bind(v, target);
  }
  std::string base = v.name().empty() ? v.op()->name().str() : v.name().str();
  std::string variable = k_.names().make(base);
  w().noted(llvm::formatv("const {0} {1} = {2};", variableType(type), variable, text).str(), inMargin(v));
  bind(v, variable);
}

std::string LoopText::inMargin(Value v) const {
  return shapeInMargin_.empty() || v.rank() == 0 ? v.type().str() : (ir::name(v.dtype()) + shapeInMargin_).str();
}

void LoopText::prepare(const LoopStep &step) {
  if (step.kind != LoopStep::Kind::random) return;
  k_.use("random.cuh");
  std::string key = k_.names().make(step.result.name().str() + "_key");
  w().line("const u64 {0} = rngKey((u64)(i64)load({1}), {2}ull);", key, k_.input(step.access.input),
           static_cast<uint64_t>(step.op->attr<int64_t>("stream")));
  keys_[step.result.def()] = key;
}

// Then the store rounds it: instructions that make FP8 are slow, and undoing them is slower.
bool LoopText::isOnlyStored(Value v) const {
  auto reads = [&](const LoopStep &step) { return step.op && llvm::is_contained(step.op->operands(), v); };
  return llvm::none_of(plan_.main, reads) && llvm::none_of(plan_.finish, reads) &&
         llvm::none_of(plan_.sums, [&](const RowsSum &sum) { return sum.of == v; });
}

void LoopText::compute(const LoopStep &step) {
  Value v = step.result;
  DType type = typeOf(v);
  std::string lane = isWide(step.span) ? "e" : "";
  switch (step.kind) {
  case LoopStep::Kind::constant: return bind(v, constantText(step.op->attr<double>("value"), type));
  case LoopStep::Kind::extent: {
    std::string n = k_.dim(product(step.op->attr<Shape>("shape")));
    if (product(step.op->attr<Shape>("shape")).isConstant())
      return bind(v, constantText(static_cast<double>(product(step.op->attr<Shape>("shape")).value()), type));
    return define(v, type, castText("(double)" + n, DType::f64, type));
  }
  case LoopStep::Kind::iota: {
    Access access;
    llvm::SmallVector<Dim, 4> strides(plan_.domain.size(), Dim(0));
    strides[step.iotaDim] = 1;
    access.strides = strides;
    std::string at = terms(0, access.strides, lane);
    if (at != column(lane)) at = "(" + at + ")";
    bool isWord = isInteger(type) && byteSize(type) >= 4; // no dim has 2^31 elements that memory could hold
    return define(v, type, isWord ? ("(" + storageType(type) + ")" + at).str() : castText(at, DType::i64, type));
  }
  case LoopStep::Kind::random:
    return define(v, type, "rngUniform(" + keys_[v.def()] + ", (u64)(" + index(step.access, lane) + "))");
  case LoopStep::Kind::spread: {
    std::string text = spell(step.op->operand(0u));
    if (targets_.count(v.def())) return define(v, type, text);
    return bind(v, text);
  }
  case LoopStep::Kind::formula: {
    llvm::SmallVector<ScalarOperand, 4> operands;
    for (Value operand : step.op->operands()) operands.push_back({spell(operand), operand.dtype()});
    bool isUnsaturated = isUnsaturatedCast(step.op->site());
    if (isUnsaturated) k_.use("fp8_unsaturated.cuh");
    if (step.op->is("cast") && isFp8(type) && !isUnsaturated && isOnlyStored(v))
      return define(v, type, operands[0].text);
    k_.use("math.cuh");
    return define(v, type, formulaText(*step.op, operands, w(), k_.names()));
  }
  default: FUSOR_BUG("this step is not computed in place");
  }
}

// store() of f8e5m2 saturates, also an Inf that was loaded or is meant.
std::string LoopText::pointer(const LoopStore &store) {
  std::string p = outputs_.empty() ? k_.output(store.output) : outputs_[store.output];
  Op *op = store.value.op();
  bool isSaturated = op && op->is("cast") && !isUnsaturatedCast(op->site());
  if (typeOf(store.value) != DType::f8e5m2 || isSaturated) return p;
  k_.use("fp8_unsaturated.cuh");
  return "(f8e5m2_inf *)" + p;
}

void LoopText::storeArray(const LoopStore &store, llvm::StringRef array) {
  std::string p = pointer(store);
  if (isVector(store.access)) {
    k_.use("vector.cuh");
    return w().line("storeVector({0} + {1}, {2});", p, index(store.access), array);
  }
  auto lanes = laneLoop();
  w().line("store({0} + {1}, {2}[e]);", p, index(store.access, "e"), array);
}

void LoopText::storeScalar(const LoopStore &store) {
  std::string p = pointer(store);
  w().line("store({0} + {1}, {2});", p, index(store.access), spell(store.value));
}

} // namespace fusor::codegen
