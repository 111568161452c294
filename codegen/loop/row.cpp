// Reductions over columns. A unit (a warp, or a block) works on one row at a time, in sweeps (row_schedule.h):
//
//   load     the thread's columns of every full input -> registers, where a row fits
//   sweep 0  what needs no reduction; accumulates the reductions of it
//   reduce   over the unit -> row values, e.g. the mean
//   sweep 1  what needs those; accumulates the next reductions, ...
//
// With sums over rows a block takes a chunk of rows and its threads keep running sums of their columns; where warps
// have rows of their own, they add up at the end.
#include "codegen/loop/emit_loop.h"
#include "codegen/loop/row_schedule.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace fusor::codegen {

using namespace ir;

namespace {

constexpr int64_t kMostPersistentColumns = 8192;
constexpr int64_t kMostWarpColumns = 1024;
constexpr int kWarpsPerBlock = 4;
// Elements of full inputs and running sums that a thread of a warp keeps: few, so that many warps hide each other's
// waits; more where sums would otherwise cost a barrier a row, and three blocks are enough as all loads go out at once.
constexpr int64_t kMostElements = 96, kMostElementsWithSums = 144;
constexpr unsigned kBlocksOfManyElements = 3;

class RowWriter {
public:
  explicit RowWriter(LoopJob &job)
      : job_(job), plan_(job.plan), k_(job.body, job.set, job.plan.sums.empty() ? "" : "rows"),
        text_(k_, plan_, vectorWidth(plan_, k_)) {}

  void write() {
    job_.prepare(k_, text_);
    text_.setWriter(k_.code());
    k_.use(plan_.sums.empty() ? "reduce.cuh" : "partials.cuh");
    chooseShape();
    schedule_.emplace(plan_, persistent_);
    if (!plan_.sums.empty()) job_.addPartials(chunks());
    writeKernel();
    if (!plan_.sums.empty()) emitFinish(job_, chunks(), chunks());
  }

private:
  // --- shape: who works on what

  void chooseShape() {
    persistent_ = plan_.columns.isConstant() && plan_.columns.value() <= kMostPersistentColumns;
    int64_t columns = persistent_ ? std::max<int64_t>(plan_.columns.value(), 1) : kMostPersistentColumns;
    int64_t arrays = residentArrays();
    int64_t elements = columns / 32 * arrays;
    isWarp_ = persistent_ && columns <= kMostWarpColumns &&
              elements <= (hasColumnSums() ? kMostElementsWithSums : kMostElements);
    if (isWarp_ && elements > kMostElements) blocksTogether_ = kBlocksOfManyElements;
    if (isWarp_) {
      threads_ = 32;
    } else {
      int64_t each = arrays <= 2 ? 16 : 8;
      each = std::max<int64_t>(each / text_.width(), 1) * text_.width();
      threads_ = std::min<int64_t>(std::max<int64_t>((columns / each + 31) / 32 * 32, 64), 512);
      if (!persistent_) threads_ = 256;
    }
    turns_ = (columns + threads_ * text_.width() - 1) / (threads_ * text_.width());
    isRagged_ = columns % (threads_ * text_.width()) != 0;
    if (plan_.sums.empty()) return;
    // Fewer partial sums of columns against more blocks at work; those of scalars are cheap.
    if (hasColumnSums())
      chunkRows_ = isWarp_ ? 6 * kWarpsPerBlock : 16;
    else
      chunkRows_ = isWarp_ ? 4 * kWarpsPerBlock : std::clamp<int64_t>(kMostPersistentColumns / columns, 1, 4);
    if (!persistent_ && !hasColumnSums()) chunkRows_ = 1;
  }
  Count chunks() const { return Count::ceilDiv(plan_.rows, chunkRows_); }
  bool hasColumnSums() const {
    return llvm::any_of(plan_.sums, [](const RowsSum &sum) { return sum.span == Span::column; });
  }
  // Arrays of a thread's columns that live as long as the row, or longer.
  int64_t residentArrays() const {
    return llvm::count_if(plan_.sums, [](const RowsSum &sum) { return sum.span == Span::column; }) +
           llvm::count_if(plan_.main,
                          [](const LoopStep &s) { return s.kind == LoopStep::Kind::load && s.span == Span::full; });
  }
  bool keepsSums() const { return persistent_; } // running column sums in registers; else in the partials themselves

  // --- text

  // "x8[j]" of an array [turns][width]; the lane is added for width > 1.
  std::string elements(llvm::StringRef array) const { return turns_ > 1 ? array.str() + "[j]" : array.str(); }
  std::string lane(const std::string &elements) const { return text_.width() > 1 ? elements + "[e]" : elements; }
  void declare(llvm::StringRef type, llvm::StringRef array) {
    std::string dims = (turns_ > 1 ? "[" + std::to_string(turns_) + "]" : "") +
                       (text_.width() > 1 ? "[" + std::to_string(text_.width()) + "]" : "");
    w().noted((type + " " + array + dims + ";").str(),
              turns_ > 1 ? "this thread's columns, turn by turn" : "this thread's columns");
  }

  // The loop over this thread's columns.
  template <typename Body> void overColumns(Body body) {
    std::string my = text_.width() > 1 ? " * " + std::to_string(text_.width()) : "";
    if (!persistent_) {
      auto loop = w().block("for (i64 c = (i64)thread{0}; c < {1}; c += {2})", my, k_.dim(plan_.columns),
                            threads_ * text_.width());
      return body();
    }
    std::optional<CodeWriter::Block> loop, guard;
    std::string first = "thread";
    if (turns_ > 1) {
      w().raw("#pragma unroll");
      loop.emplace(w().block("for (int j = 0; j < {0}; ++j)", turns_));
      first = llvm::formatv("(j * {0} + thread)", threads_);
    } else {
      loop.emplace(w().open(""));
    }
    CodeWriter inside(w().indent() + (isRagged_ ? 2 : 0));
    CodeWriter *outside = std::exchange(writer_, &inside);
    text_.setWriter(inside);
    body();
    writer_ = outside;
    text_.setWriter(*outside);
    if (isRagged_ || usesColumn(inside.text())) w().line("const int c = {0}{1};", first, my);
    if (isRagged_) guard.emplace(w().block("if (c < {0})", plan_.columns.value()));
    w().append(inside.text());
  }

  static bool usesColumn(llvm::StringRef text) { // the word `c`
    auto isPart = [](char c) { return llvm::isAlnum(c) || c == '_'; };
    for (size_t i = 0; i < text.size(); ++i)
      if (text[i] == 'c' && (i == 0 || !isPart(text[i - 1])) && (i + 1 == text.size() || !isPart(text[i + 1])))
        return true;
    return false;
  }

  void writeKernel() {
    std::string rows = k_.dim(plan_.rows);
    if (isWarp_ && plan_.sums.empty())
      w().line("const i64 row = (i64)blockIdx.x * {0} + threadIdx.x / 32; // a warp a row", kWarpsPerBlock);
    else
      w().line("const i64 {0} = blockIdx.x;{1}", plan_.sums.empty() ? "row" : "chunk",
               isWarp_ ? "" : " // a block a row");
    if (isWarp_ && !plan_.sums.empty())
      w().raw("const int warp = threadIdx.x / 32, thread = threadIdx.x % 32; // a warp a row");
    else
      w().raw(isWarp_ ? "const int thread = threadIdx.x % 32;" : "const int thread = threadIdx.x;");
    for (const LoopStep &step : plan_.main) text_.prepare(step);
    std::string note = isWarp_ ? "a warp a row" : "a block a row";
    Count grid = plan_.rows;
    if (plan_.sums.empty()) {
      if (isWarp_) {
        w().line("if (row >= {0}) return; // whole warps", rows);
        grid = Count::ceilDiv(plan_.rows, kWarpsPerBlock);
      }
      writeRow();
    } else if (chunkRows_ == 1) {
      w().raw("const i64 row = chunk;");
      startSums();
      writeRow();
      storeSums();
    } else {
      w().line("const i64 firstRow = chunk * {0};", chunkRows_);
      w().line("const i64 endRow = firstRow + {0} < {1} ? firstRow + {0} : {1};", chunkRows_, rows);
      startSums();
      if (fetchesAhead()) startFetching();
      {
        auto loop = isWarp_ ? w().block("for (i64 row = firstRow + warp; row < endRow; row += {0})", kWarpsPerBlock)
                            : w().block("for (i64 row = firstRow; row < endRow; ++row)");
        writeRow();
      }
      storeSums();
      note += llvm::formatv(", {0} rows one after another", isWarp_ ? chunkRows_ / kWarpsPerBlock : chunkRows_);
      grid = chunks();
    }
    note += persistent_ ? "; the row stays in registers" : "; a row is read once a sweep";
    k_.finish({.grid = grid,
               .block = static_cast<unsigned>(isWarp_ ? 32 * kWarpsPerBlock : threads_),
               .note = note,
               .blocksTogether = blocksTogether_});
  }

  void writeRow() {
    if (persistent_) loadRow();
    for (unsigned at = 0; at <= schedule_->lastSweep(); ++at) {
      rowValues(at);
      sweep(at);
    }
    bool any = false;
    for (const LoopStore &store : plan_.stores) {
      if (variesOverColumns(store.span)) continue;
      if (!any) w().raw("// store, one thread a row");
      any = true;
      auto guard = w().open(store.span == Span::row ? "if (thread == 0)" : "if (thread == 0 && row == 0)");
      text_.storeScalar(store);
    }
    for (unsigned i = 0; i < plan_.sums.size(); ++i)
      if (!variesOverColumns(schedule_->step(plan_.sums[i].of).span))
        accumulate(running_[i], plan_.sums[i].op, plan_.sums[i].of);
  }

  llvm::SmallVector<const LoopStep *, 8> fullLoads() const {
    llvm::SmallVector<const LoopStep *, 8> loads;
    for (const LoopStep &step : plan_.main)
      if (step.kind == LoopStep::Kind::load && step.span == Span::full) loads.push_back(&step);
    return loads;
  }

  void loadRow() {
    auto loads = fullLoads();
    if (loads.empty()) return;
    w().raw(ahead_.empty() ? "// load"
                           : "// load: this row was fetched ahead, and while it is computed the next one is");
    std::vector<std::string> arrays;
    for (const LoopStep *step : loads) {
      std::string array = k_.names().make(identifierFrom(step->result.name()) + std::to_string(text_.width()));
      declare(variableType(step->result.dtype()), array);
      arrays.push_back(array);
      text_.bind(step->result, lane(elements(array)));
    }
    if (ahead_.empty())
      return overColumns([&] {
        for (unsigned i = 0; i < loads.size(); ++i) text_.loadInto(*loads[i], elements(arrays[i]));
      });
    for (unsigned i = 0; i < loads.size(); ++i) w().line("unpack({0}, {1});", ahead_[i], arrays[i]);
    w().raw("const i64 next = row + 1 < endRow ? row + 1 : row;");
    fetchRow("next");
  }

  // A block that goes from row to row waits for its threads twice a row, so loads start a row ahead: as raw vectors,
  // for few registers.
  bool fetchesAhead() const {
    auto isVector = [&](const LoopStep *step) { return !step->access.gather && text_.isVector(step->access); };
    return !isWarp_ && persistent_ && hasColumnSums() && turns_ == 1 && !fullLoads().empty() &&
           llvm::all_of(fullLoads(), isVector);
  }
  void startFetching() {
    for (const LoopStep *step : fullLoads()) {
      ahead_.push_back(k_.names().make(identifierFrom(step->result.name()) + "_ahead"));
      w().line("VectorBits<{0}, {1}> {2};", storageType(step->result.dtype()), text_.width(), ahead_.back());
    }
    fetchRow("firstRow");
  }
  void fetchRow(llvm::StringRef row) {
    Place here = text_.place(), there = here;
    there.row = row.str();
    text_.setPlace(there);
    auto loads = fullLoads();
    overColumns([&] {
      for (unsigned i = 0; i < loads.size(); ++i) text_.fetchInto(*loads[i], ahead_[i]);
    });
    text_.setPlace(here);
  }

  // Values per row (and scalars) that become known before sweep `at`.
  void rowValues(unsigned at) {
    for (const LoopStep &step : plan_.main) {
      if (variesOverColumns(step.span) || schedule_->level(step.result) != at) continue;
      if (step.kind == LoopStep::Kind::rowReduce) continue; // bound by the sweep before
      if (step.kind == LoopStep::Kind::load)
        text_.load(step);
      else
        text_.compute(step);
    }
  }

  void accumulate(const std::string &into, Op *op, Value v) {
    std::string value = v.dtype() == DType::f64 || !isInteger(v.dtype()) ? text_.spell(v) : "(double)" + text_.spell(v);
    if (op->is("sum"))
      w().line("{0} += {1};", into, value);
    else
      w().line("{0} = {1}::combine({0}, {2});", into, reducer(*op), value);
  }

  static std::string identity(const Op &op, DType type) {
    return (reducer(op) + "::identity<" + accumulatorType(type) + ">()").str();
  }

  void sweep(unsigned at) {
    if (schedule_->wantedBy(at).empty()) return;
    RowSchedule::Values needed = schedule_->neededBy(at);

    w().line("// sweep {0}", at);
    llvm::SmallVector<const LoopStep *, 4> reductions;
    llvm::SmallVector<std::string, 4> sums;
    llvm::SmallVector<std::pair<const LoopStep *, std::string>, 1> expSums; // by their maximum
    for (const LoopStep &step : plan_.main) {
      if (step.kind != LoopStep::Kind::rowReduce || schedule_->level(schedule_->reduced(step)) != at) continue;
      if (schedule_->isExpSum(step)) continue; // beside its maximum
      if (schedule_->expSumBeside(step)) {
        expSums.push_back({&step, k_.names().make("exp_sum")});
        k_.use("exp_sum.cuh");
        w().noted("ExpSum " + expSums.back().second + ";", "the largest x, and the sum of exp(x - largest)");
        continue;
      }
      reductions.push_back(&step);
      std::string base = step.result.name().empty() ? step.op->name().str() : step.result.name().str();
      sums.push_back(k_.names().make(base + "_acc"));
      DType type = step.op->operand(0u).dtype();
      w().line("{0} {1} = {2};", accumulatorType(type), sums.back(), identity(*step.op, type));
    }
    for (const LoopStep &step : plan_.main) { // arrays of what later sweeps read
      if (!schedule_->isKept(step.result) || schedule_->level(step.result) != at) continue;
      std::string array = text_.variableFor(step.result, step.span);
      declare(variableType(step.result.dtype()), array);
      text_.assignTo(step.result, lane(elements(array)));
    }
    overColumns([&] { sweepBody(at, needed, reductions, sums, expSums); });
    for (const LoopStep &step : plan_.main) // computed again where needed
      if (needed.contains(step.result.def()) && !schedule_->isKept(step.result)) text_.forget(step.result);
    finishReductions(reductions, sums);
    llvm::StringRef scope = isWarp_ ? "warp" : "block";
    for (const auto &[maximum, name] : expSums) {
      auto define = [&](const LoopStep &step, const std::string &text) {
        std::string variable = k_.names().make(step.result.name().empty() ? step.op->name() : step.result.name());
        w().noted("const float " + variable + " = " + text + ";", step.result.type().str());
        text_.bind(step.result, variable);
        return variable;
      };
      std::string largest = define(*maximum, llvm::formatv("{0}Reduce<Max>({1}.largest)", scope, name).str());
      define(*schedule_->expSumBeside(*maximum),
             llvm::formatv("{0}Reduce<Sum>({1}.sumAt({2}))", scope, name, largest).str());
    }
  }

  void sweepBody(unsigned at, const RowSchedule::Values &needed, llvm::ArrayRef<const LoopStep *> reductions,
                 llvm::ArrayRef<std::string> sums, llvm::ArrayRef<std::pair<const LoopStep *, std::string>> expSums) {
    for (const LoopStep &step : plan_.main)
      if (step.kind == LoopStep::Kind::load && needed.contains(step.result.def())) text_.load(step);
    llvm::MapVector<const ValueDef *, std::string> arrays; // what is used whole in this sweep, as an array a turn
    auto needsArray = [&](Value v, Span span) {
      if (!text_.isWide(span) || arrays.count(v.def())) return;
      if (text_.isBound(v) || schedule_->isKept(v)) {
        std::string element = text_.isBound(v) ? text_.spell(v) : text_.target(v);
        arrays[v.def()] = llvm::StringRef(element).drop_back(3).str();
        return;
      }
      std::string array = text_.variableFor(v, span);
      w().line("{0} {1}[{2}];", variableType(v.dtype()), array, text_.width());
      text_.assignTo(v, array + "[e]");
      arrays[v.def()] = array;
    };
    for (const LoopStore &store : plan_.stores)
      if (schedule_->outputSweep(store.value) == at) needsArray(store.value, store.span);
    for (const auto &[maximum, name] : expSums) needsArray(schedule_->reduced(*maximum), Span::full);
    {
      auto lanes = text_.laneLoop();
      for (const LoopStep &step : plan_.main)
        if (step.kind != LoopStep::Kind::load && needed.contains(step.result.def())) text_.compute(step);
      for (unsigned i = 0; i < reductions.size(); ++i)
        accumulate(sums[i], reductions[i]->op, reductions[i]->op->operand(0u));
      for (unsigned i = 0; i < plan_.sums.size(); ++i) {
        const RowsSum &sum = plan_.sums[i];
        if (!variesOverColumns(schedule_->step(sum.of).span) || schedule_->outputSweep(sum.of) != at) continue;
        if (sum.span == Span::scalar)
          accumulate(running_[i], sum.op, sum.of);
        else if (keepsSums())
          accumulate(lane(elements(running_[i])), sum.op, sum.of);
        else
          accumulateInMemory(i);
      }
    }
    for (const auto &[maximum, name] : expSums) {
      Value x = schedule_->reduced(*maximum);
      w().line("{0}.add({1});", name, text_.width() > 1 ? arrays[x.def()] : text_.spell(x));
    }
    for (const LoopStore &store : plan_.stores) {
      if (!variesOverColumns(store.span) || schedule_->outputSweep(store.value) != at) continue;
      std::optional<CodeWriter::Block> once;
      if (store.span == Span::column) once.emplace(w().block("if (row == 0)"));
      if (text_.isWide(store.span))
        text_.storeArray(store, arrays[store.value.def()]);
      else
        text_.storeScalar(store);
    }
  }

  void finishReductions(llvm::ArrayRef<const LoopStep *> reductions, llvm::ArrayRef<std::string> sums) {
    llvm::StringRef scope = isWarp_ ? "warp" : "block";
    for (unsigned i = 0; i < reductions.size(); ++i) {
      const Op &op = *reductions[i]->op;
      Value v = reductions[i]->result;
      // Several of one kind share the barriers of a block.
      llvm::SmallVector<unsigned, 4> same;
      for (unsigned j = 0; j < reductions.size(); ++j)
        if (reducer(*reductions[j]->op) == reducer(op) &&
            accumulatorType(reductions[j]->op->operand(0u).dtype()) == accumulatorType(op.operand(0u).dtype()))
          same.push_back(j);
      if (isWarp_ || same.size() == 1) {
        w().line("{0} = {1}Reduce<{2}>({0});", sums[i], scope, reducer(op));
      } else if (same.front() == i) {
        std::string all = k_.names().make("all");
        std::string list;
        for (unsigned j : same) list += (list.empty() ? "" : ", ") + sums[j];
        w().line("{0} {1}[{2}] = {{{3}};", accumulatorType(op.operand(0u).dtype()), all, same.size(), list);
        w().line("blockReduceAll<{0}>({1});", reducer(op), all);
        for (unsigned j = 0; j < same.size(); ++j) w().line("{0} = {1}[{2}];", sums[same[j]], all, j);
      }
      std::string text = fromAccumulator(sums[i], v.dtype());
      if (text == sums[i]) {
        text_.bind(v, text);
      } else {
        std::string variable = k_.names().make(v.name().empty() ? op.name() : v.name());
        w().line("const {0} {1} = {2};", variableType(v.dtype()), variable, text);
        text_.bind(v, variable);
      }
    }
  }

  // --- sums over rows

  void startSums() {
    for (unsigned i = 0; i < plan_.sums.size(); ++i) {
      const RowsSum &sum = plan_.sums[i];
      llvm::StringRef type = accumulatorType(sum.of.dtype());
      std::string base = sum.result.name().empty() ? sum.op->name().str() : sum.result.name().str();
      running_.push_back(k_.names().make(base + "_sum"));
      if (sum.span == Span::scalar) {
        w().line("{0} {1} = {2};", type, running_.back(), identity(*sum.op, sum.of.dtype()));
      } else if (keepsSums()) {
        declare(type, running_.back());
        std::string indent;
        if (turns_ > 1) w().line("for (int j = 0; j < {0}; ++j)", turns_), indent += "  ";
        if (text_.width() > 1) w().line("{0}for (int e = 0; e < {1}; ++e)", indent, text_.width()), indent += "  ";
        w().line("{0}{1} = {2};", indent, lane(elements(running_.back())), identity(*sum.op, sum.of.dtype()));
      }
    }
  }

  // One thread has the same columns in each row of the chunk, so it may add in memory.
  void accumulateInMemory(unsigned i) {
    const RowsSum &sum = plan_.sums[i];
    std::string lane = text_.width() > 1 ? " + e" : "";
    std::string at =
        llvm::formatv("{0}[chunk * {1} + c{2}]", job_.partials(k_, i, false), k_.dim(plan_.columns), lane).str();
    w().line("if (row == firstRow) {0} = {1};", at, identity(*sum.op, sum.of.dtype()));
    accumulate(at, sum.op, sum.of);
  }

  void storeSums() {
    w().raw("// store, partial sums of this chunk of rows");
    for (unsigned i = 0; i < plan_.sums.size(); ++i) {
      const RowsSum &sum = plan_.sums[i];
      std::string partials = job_.partials(k_, i, false), columns = k_.dim(plan_.columns);
      if (sum.span == Span::column) {
        if (!keepsSums()) continue; // they are there
        if (isWarp_) {
          w().line("storeColumnSums<{0}, {1}, {2}>({3} + chunk * {4}, {4}, {5});", reducer(*sum.op), kWarpsPerBlock,
                   text_.width(), partials, columns, running_[i]);
          continue;
        }
        overColumns([&] {
          auto lanes = text_.laneLoop();
          w().line("{0}[chunk * {1} + c{2}] = {3};", partials, columns, text_.width() > 1 ? " + e" : "",
                   lane(elements(running_[i])));
        });
        continue;
      }
      bool isOfEachThread = variesOverColumns(schedule_->step(sum.of).span);
      if (!isOfEachThread && isWarp_) // all lanes have the same: the first one counts
        w().line("if (thread > 0) {0} = {1};", running_[i], identity(*sum.op, sum.of.dtype()));
      if (isOfEachThread || isWarp_) w().line("{0} = blockReduce<{1}>({0});", running_[i], reducer(*sum.op));
      w().line("if (threadIdx.x == 0) {0}[chunk] = {1};", partials, running_[i]);
    }
  }

  CodeWriter &w() { return *writer_; }

  LoopJob &job_;
  const LoopPlan &plan_;
  KernelBuilder k_;
  LoopText text_;
  CodeWriter *writer_ = &k_.code(); // where lines go now
  std::optional<RowSchedule> schedule_;
  bool persistent_ = false, isWarp_ = false, isRagged_ = false;
  unsigned blocksTogether_ = 0;
  int64_t threads_ = 32, turns_ = 1, chunkRows_ = 1;
  std::vector<std::string> running_; // variables of plan_.sums
  std::vector<std::string> ahead_;   // raw vectors of the full inputs, a row ahead
};

} // namespace

void emitRow(LoopJob &job) { RowWriter(job).write(); }

} // namespace fusor::codegen
