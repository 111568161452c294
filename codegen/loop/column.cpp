// Sums over rows without reductions over columns: bias gradients, sums of whole tensors. A block owns a tile of columns
// and a chunk of rows; each thread walks down its own columns, so reads coalesce and nothing is shared.
#include "codegen/loop/emit_loop.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::codegen {

using namespace ir;

namespace {

constexpr int64_t kMostThreads = 128, kChunkRows = 32;

class ColumnWriter {
public:
  explicit ColumnWriter(LoopJob &job)
      : job_(job), plan_(job.plan), k_(job.body, job.set, "rows"), text_(k_, plan_, vectorWidth(plan_, k_)) {}

  void write() {
    job_.prepare(k_, text_);
    k_.use("reduce.cuh");
    for (const RowsSum &sum : plan_.sums) hasScalars_ |= sum.span == Span::scalar && !isRow(sum.of);
    threads_ = kMostThreads;
    if (plan_.columns.isConstant())
      threads_ = std::min<int64_t>(kMostThreads,
                                   std::max<int64_t>(32, (plan_.columns.value() / text_.width() + 31) / 32 * 32));
    tiles_ = Count::ceilDiv(plan_.columns, threads_ * text_.width());
    chunks_ = Count::ceilDiv(plan_.rows, kChunkRows);
    // A sum of everything has a part for each block, the others one for each chunk.
    Count scalarParts = hasScalars_ ? chunks_ * tiles_ : chunks_;
    addPartials(scalarParts);
    writeKernel();
    emitFinish(job_, chunks_, scalarParts);
  }

private:
  bool isRow(Value v) const { return spanOf(v) == Span::row; }
  Span spanOf(Value v) const {
    return llvm::find_if(plan_.main, [&](const LoopStep &s) { return s.result == v; })->span;
  }
  static bool varies(Span span) { return span == Span::full || span == Span::column; }

  void addPartials(const Count &scalarParts) {
    job_.firstPartials = job_.set.workspaces.size();
    for (const RowsSum &sum : plan_.sums) {
      Count parts = sum.span == Span::column ? chunks_ * Count(plan_.columns) : scalarParts;
      job_.set.workspaces.push_back(parts * Count(accumulatorBytes(sum.of.dtype())));
    }
  }

  std::string element(const std::string &array) const { return text_.width() > 1 ? array + "[e]" : array; }
  static std::string identity(const RowsSum &sum) {
    return (reducer(*sum.op) + "::identity<" + accumulatorType(sum.of.dtype()) + ">()").str();
  }
  void accumulate(const std::string &into, const RowsSum &sum) {
    std::string value = (isInteger(sum.of.dtype()) ? "(double)" : "") + text_.spell(sum.of);
    if (sum.op->is("sum"))
      w().line("{0} += {1};", into, value);
    else
      w().line("{0} = {1}::combine({0}, {2});", into, reducer(*sum.op), value);
  }

  void writeKernel() {
    text_.setWriter(k_.code());
    std::string tiles = k_.count(tiles_), columns = k_.dim(plan_.columns), rows = k_.dim(plan_.rows);
    if (!tiles_.isConstant()) tiles = "(" + tiles + ")";
    w().line("const i64 tile = blockIdx.x % {0}, chunk = blockIdx.x / {0};", tiles);
    w().line("const i64 c = (tile * {0} + threadIdx.x){1};", threads_,
             text_.width() > 1 ? " * " + std::to_string(text_.width()) : "");
    w().line("const i64 firstRow = chunk * {0}, endRow = firstRow + {0} < {1} ? firstRow + {0} : {1};", kChunkRows,
             rows);
    for (const LoopStep &step : plan_.main) text_.prepare(step);
    for (const RowsSum &sum : plan_.sums) {
      std::string base = sum.result.name().empty() ? sum.op->name().str() : sum.result.name().str();
      running_.push_back(k_.names().make(base + "_sum"));
      bool isArray = sum.span == Span::column && text_.width() > 1;
      llvm::StringRef type = accumulatorType(sum.of.dtype());
      if (!isArray) {
        w().line("{0} {1} = {2};", type, running_.back(), identity(sum));
        continue;
      }
      w().line("{0} {1}[{2}];", type, running_.back(), text_.width());
      w().line("for (int e = 0; e < {0}; ++e) {1}[e] = {2};", text_.width(), running_.back(), identity(sum));
    }
    {
      auto inside = w().block("if (c < {0})", columns);
      steps([](Span span) { return span == Span::column || span == Span::scalar; }, "this thread's columns", true);
      {
        auto loop = w().block("for (i64 row = firstRow; row < endRow; ++row)");
        steps([](Span span) { return span == Span::full || span == Span::row; }, "load", false);
      }
      for (unsigned i = 0; i < plan_.sums.size(); ++i) {
        if (plan_.sums[i].span != Span::column) continue;
        auto lanes = text_.laneLoop();
        w().line("{0}[chunk * {1} + c{2}] = {3};", job_.partials(k_, i, false), columns,
                 text_.width() > 1 ? " + e" : "", element(running_[i]));
      }
    }
    for (unsigned i = 0; i < plan_.sums.size(); ++i) {
      const RowsSum &sum = plan_.sums[i];
      if (sum.span != Span::scalar) continue;
      std::string part = hasScalars_ ? "blockIdx.x" : "chunk";
      if (!isRow(sum.of)) {
        w().line("{0} = blockReduce<{1}>({0});", running_[i], reducer(*sum.op));
        w().line("if (threadIdx.x == 0) {0}[{1}] = {2};", job_.partials(k_, i, false), part, running_[i]);
      } else if (hasScalars_) { // every tile of columns saw the same rows: the first one counts
        w().line("if (threadIdx.x == 0) {0}[blockIdx.x] = tile == 0 ? {1} : {2};", job_.partials(k_, i, false),
                 running_[i], identity(sum));
      } else {
        w().line("if (threadIdx.x == 0 && tile == 0) {0}[chunk] = {1};", job_.partials(k_, i, false), running_[i]);
      }
    }
    k_.finish({chunks_ * tiles_, static_cast<unsigned>(threads_),
               llvm::formatv("a thread has {0} column{1} of {2} rows", text_.width(), text_.width() > 1 ? "s" : "",
                             kChunkRows)
                   .str()});
  }

  // Loads, computes and stores the steps of some spans; those of rows also accumulate.
  template <typename Takes> void steps(Takes takes, llvm::StringRef what, bool isColumns) {
    w().line("// {0}", what);
    for (const LoopStep &step : plan_.main)
      if (step.kind == LoopStep::Kind::load && takes(step.span)) text_.load(step);
    llvm::MapVector<const ValueDef *, std::string> arrays;
    auto needsArray = [&](Value v) {
      if (arrays.count(v.def())) return;
      if (text_.isBound(v)) {
        arrays[v.def()] = llvm::StringRef(text_.spell(v)).drop_back(3).str();
        return;
      }
      std::string array = text_.variableFor(v, Span::full);
      w().line("{0} {1}[{2}];", variableType(v.dtype()), array, text_.width());
      text_.assignTo(v, array + "[e]");
      arrays[v.def()] = array;
    };
    for (const LoopStore &store : plan_.stores)
      if (takes(store.span) && text_.isWide(store.span)) needsArray(store.value);
    if (isColumns) // what rows use is computed once, before them
      for (const LoopStep &step : plan_.main)
        if (step.span == Span::column && text_.isWide(step.span) && step.kind != LoopStep::Kind::load)
          needsArray(step.result);
    auto isComputed = [&](const LoopStep &step) { return step.kind != LoopStep::Kind::load && takes(step.span); };
    for (const LoopStep &step : plan_.main)
      if (isComputed(step) && !text_.isWide(step.span)) text_.compute(step);
    {
      bool isAny = !isColumns ||
                   llvm::any_of(plan_.main, [&](const LoopStep &s) { return isComputed(s) && text_.isWide(s.span); });
      std::optional<CodeWriter::Block> lanes = isAny ? text_.laneLoop() : std::nullopt;
      for (const LoopStep &step : plan_.main)
        if (isComputed(step) && text_.isWide(step.span)) text_.compute(step);
      if (!isColumns)
        for (unsigned i = 0; i < plan_.sums.size(); ++i)
          if (!isRow(plan_.sums[i].of))
            accumulate(plan_.sums[i].span == Span::column ? element(running_[i]) : running_[i], plan_.sums[i]);
    }
    if (!isColumns)
      for (unsigned i = 0; i < plan_.sums.size(); ++i)
        if (isRow(plan_.sums[i].of)) accumulate(running_[i], plan_.sums[i]);
    for (const LoopStore &store : plan_.stores) {
      if (!takes(store.span)) continue;
      std::optional<CodeWriter::Block> once;
      if (store.span == Span::column) once.emplace(w().block("if (chunk == 0)"));
      if (store.span == Span::row) once.emplace(w().block("if (c == 0)"));
      if (store.span == Span::scalar) once.emplace(w().block("if (chunk == 0 && c == 0)"));
      if (text_.isWide(store.span))
        text_.storeArray(store, arrays[store.value.def()]);
      else
        text_.storeScalar(store);
    }
  }

  CodeWriter &w() { return k_.code(); }

  LoopJob &job_;
  const LoopPlan &plan_;
  KernelBuilder k_;
  LoopText text_;
  bool hasScalars_ = false;
  int64_t threads_ = kMostThreads;
  Count tiles_ = 1, chunks_ = 1;
  std::vector<std::string> running_;
};

} // namespace

void emitColumn(LoopJob &job) { ColumnWriter(job).write(); }

} // namespace fusor::codegen
