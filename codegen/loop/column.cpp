// Sums over rows without reductions over columns: bias gradients, sums of whole tensors. A block owns a tile of columns
// and a chunk of rows. Its warps have all columns of the tile and every eighth row each, so reads coalesce and many
// rows are on their way at once; at the end they add up what they have. Transposed results are gathered in a tile of
// the same rows and columns, with or without sums.
#include "codegen/loop/emit_loop.h"
#include "codegen/loop/transposed_stores.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace fusor::codegen {

using namespace ir;

namespace {

constexpr unsigned kColumnWarps = 8;
constexpr int64_t kMostTileBytes = 36 * 1024; // of transposed results: 64 neighbours in memory of each column, or more
constexpr unsigned kResidentBlocks = 4;       // half of the threads that fit, each with all loads of a row on their way

// Rows of a chunk: wide matrices make enough blocks by their columns, and have fewer partial sums for it.
int64_t chunkRowsFor(const Dim &columns, int64_t tileColumns) {
  if (!columns.isConstant()) return 64;
  int64_t tiles = (columns.value() + tileColumns - 1) / tileColumns;
  return std::clamp<int64_t>(llvm::PowerOf2Floor(8 * tiles), 32, 128);
}

class ColumnWriter {
public:
  explicit ColumnWriter(LoopJob &job)
      : job_(job), plan_(job.plan), k_(job.body, job.set, job.plan.sums.empty() ? "" : "rows"),
        text_(k_, plan_, vectorWidth(plan_, k_)), tileColumns_(32 * text_.width()), chunkRows_(chooseChunkRows()),
        transposed_(k_, plan_, chunkRows_, tileColumns_, text_.width()) {}

  void write() {
    job_.prepare(k_, text_);
    if (!plan_.sums.empty()) k_.use("partials.cuh");
    for (const RowsSum &sum : plan_.sums) hasScalars_ |= sum.span == Span::scalar && !isRow(sum.of);
    tiles_ = Count::ceilDiv(plan_.columns, tileColumns_);
    chunks_ = Count::ceilDiv(plan_.rows, chunkRows_);
    // A sum of everything has a part for each block, the others one for each chunk.
    Count scalarParts = hasScalars_ ? chunks_ * tiles_ : chunks_;
    addPartials(scalarParts);
    writeKernel();
    if (!plan_.sums.empty()) emitFinish(job_, chunks_, scalarParts);
  }

private:
  int64_t chooseChunkRows() const {
    int64_t rows = chunkRowsFor(plan_.columns, tileColumns_);
    if (plan_.hasTransposedStore()) rows = std::max<int64_t>(rows, 64);
    while (TransposedStores::bytesOf(plan_, rows, tileColumns_, text_.width()) > kMostTileBytes) rows /= 2;
    return rows;
  }

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
    w().raw("const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;");
    w().line("const i64 c = tile * {0} + lane{1};", tileColumns_,
             text_.width() > 1 ? " * " + std::to_string(text_.width()) : "");
    w().line("const i64 firstRow = chunk * {0}, endRow = firstRow + {0} < {1} ? firstRow + {0} : {1};", chunkRows_,
             rows);
    if (!transposed_.empty()) {
      w().raw("extern __shared__ __align__(16) u8 tileMemory[];");
      transposed_.declare(w(), "tileMemory");
    }
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
        bool storesRows = llvm::any_of(plan_.stores, [](const LoopStore &s) { return s.span == Span::full; });
        if (!storesRows) w().raw("#pragma unroll 4");
        auto loop = w().block("for (i64 row = firstRow + warp; row < endRow; row += {0})", kColumnWarps);
        steps([](Span span) { return span == Span::full || span == Span::row; }, "load", false);
      }
    }
    if (!transposed_.empty()) transposed_.store(w(), "firstRow", "endRow", "tile * " + std::to_string(tileColumns_));
    if (!plan_.sums.empty()) w().raw("// store, partial sums of this chunk of rows");
    for (unsigned i = 0; i < plan_.sums.size(); ++i) {
      const RowsSum &sum = plan_.sums[i];
      std::string partials = job_.partials(k_, i, false);
      if (sum.span == Span::column) {
        w().line("storeColumnSums<{0}, {1}, {2}>({3} + chunk * {4} + tile * {5}, {4} - tile * {5}, {6});",
                 reducer(*sum.op), kColumnWarps, text_.width(), partials, columns, tileColumns_, running_[i]);
        continue;
      }
      if (isRow(sum.of)) // all lanes, and all tiles, have the same: the first one counts
        w().line("if (lane > 0 || tile > 0) {0} = {1};", running_[i], identity(sum));
      w().line("{0} = blockReduce<{1}>({0});", running_[i], reducer(*sum.op));
      if (isRow(sum.of) && !hasScalars_)
        w().line("if (threadIdx.x == 0 && tile == 0) {0}[chunk] = {1};", partials, running_[i]);
      else
        w().line("if (threadIdx.x == 0) {0}[blockIdx.x] = {1};", partials, running_[i]);
    }
    k_.finish(
        {.grid = chunks_ * tiles_,
         .block = 32 * kColumnWarps,
         .note = llvm::formatv("a warp has {0} columns of {1} rows", tileColumns_, chunkRows_ / kColumnWarps).str(),
         .sharedBytes = static_cast<unsigned>(transposed_.bytes()),
         .blocksTogether = kResidentBlocks});
  }

  // Loads, computes and stores the steps of some spans; those of rows also accumulate.
  template <typename Takes> void steps(Takes takes, llvm::StringRef what, bool isColumns) {
    const bool isAnything = llvm::any_of(plan_.main, [&](const LoopStep &step) { return takes(step.span); });
    if (isAnything) w().line("// {0}", what);
    for (const LoopStep &step : plan_.main)
      if (step.kind == LoopStep::Kind::load && takes(step.span)) text_.load(step);
    if (isAnything && !isColumns) w().raw("// compute");
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
    if (!isColumns && llvm::any_of(plan_.stores, [&](const LoopStore &store) { return takes(store.span); }))
      w().raw("// store");
    for (const LoopStore &store : plan_.stores) {
      if (!takes(store.span)) continue;
      std::optional<CodeWriter::Block> once;
      if (store.span == Span::column) once.emplace(w().block("if (chunk == 0 && warp == 0)"));
      if (store.span == Span::row) once.emplace(w().block("if (c == 0)"));
      if (store.span == Span::scalar) once.emplace(w().block("if (chunk == 0 && warp == 0 && c == 0)"));
      if (store.isTransposed)
        putTransposed(store, text_.isWide(store.span) ? arrays[store.value.def()] : text_.spell(store.value));
      else if (text_.isWide(store.span))
        text_.storeArray(store, arrays[store.value.def()]);
      else
        text_.storeScalar(store);
    }
  }

  void putTransposed(const LoopStore &store, llvm::StringRef value) {
    transposed_.put(w(), store, "(int)(row - firstRow)",
                    text_.width() > 1 ? "lane * " + std::to_string(text_.width()) : "lane", value);
  }

  CodeWriter &w() { return k_.code(); }

  LoopJob &job_;
  const LoopPlan &plan_;
  KernelBuilder k_;
  LoopText text_;
  const int64_t tileColumns_, chunkRows_;
  TransposedStores transposed_;
  bool hasScalars_ = false;
  Count tiles_ = 1, chunks_ = 1;
  std::vector<std::string> running_;
};

} // namespace

void emitColumn(LoopJob &job) { ColumnWriter(job).write(); }

} // namespace fusor::codegen
