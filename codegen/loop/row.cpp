// Reductions over columns. A unit (a warp, or a block) works on one row at a time, in sweeps (row_schedule.h):
//
//   load     the thread's columns of every full input -> registers, where a row fits; with sums over rows they come
//            through shared memory, rows ahead (row_ring.cuh)
//   sweep 0  what needs no reduction; accumulates the reductions of it
//   reduce   over the unit -> row values, e.g. the mean
//   sweep 1  what needs those; accumulates the next reductions, ...
//
// With sums over rows a block takes a chunk of rows and its threads keep running sums of their columns; where warps
// have rows of their own, they add up at the end. With transposed results a chunk is one or more tiles of rows, whose
// columns the block stores.
#include "codegen/loop/emit_loop.h"
#include "codegen/loop/row_ring_text.h"
#include "codegen/loop/row_schedule.h"
#include "codegen/loop/row_shape.h"
#include "codegen/loop/transposed_stores.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace fusor::codegen {

using namespace ir;

namespace {

class RowWriter {
public:
  explicit RowWriter(LoopJob &job)
      : job_(job), plan_(job.plan), k_(job.body, job.set, job.plan.sums.empty() ? "" : "rows"),
        text_(k_, plan_, vectorWidth(plan_, k_)),
        shape_(rowShape(plan_, text_.width(), job.tier, [this](const Access &a) { return text_.isVector(a); })),
        transposed_(k_, plan_, shape_.tileRows, plan_.hasTransposedStore() ? plan_.columns.value() : 0, text_.width()),
        schedule_(plan_, shape_.isPersistent, shape_.usesRing) {}

  void write() {
    job_.prepare(k_, text_);
    text_.setWriter(k_.code());
    k_.use(plan_.sums.empty() ? "reduce.cuh" : "partials.cuh");
    if (!plan_.sums.empty()) job_.addPartials(shape_.chunks);
    writeKernel();
    if (!plan_.sums.empty()) emitFinish(job_, shape_.chunks, shape_.chunks);
  }

private:
  // --- text

  // "x8[j]" of an array [turns][width]; the lane is added for width > 1.
  std::string elements(llvm::StringRef array) const { return shape_.turns > 1 ? array.str() + "[j]" : array.str(); }
  std::string lane(const std::string &elements) const { return text_.width() > 1 ? elements + "[e]" : elements; }
  void declare(llvm::StringRef type, llvm::StringRef array) {
    std::string dims = (shape_.turns > 1 ? "[" + std::to_string(shape_.turns) + "]" : "") +
                       (text_.width() > 1 ? "[" + std::to_string(text_.width()) + "]" : "");
    w().noted((type + " " + array + dims + ";").str(),
              shape_.turns > 1 ? "this thread's columns, turn by turn" : "this thread's columns");
  }

  // The loop over this thread's columns.
  template <typename Body> void overColumns(Body body) {
    std::string my = text_.width() > 1 ? " * " + std::to_string(text_.width()) : "";
    if (!shape_.isPersistent) {
      auto loop = w().block("for (i64 c = (i64)thread{0}; c < {1}; c += {2})", my, k_.dim(plan_.columns),
                            shape_.threads * text_.width());
      return body();
    }
    std::optional<CodeWriter::Block> loop, guard;
    std::string first = "thread";
    if (shape_.turns > 1) {
      w().raw("#pragma unroll");
      loop.emplace(w().block("for (int j = 0; j < {0}; ++j)", shape_.turns));
      first = llvm::formatv("(j * {0} + thread)", shape_.threads);
    } else {
      loop.emplace(w().open(""));
    }
    CodeWriter inside(w().indent() + (shape_.isRagged ? 2 : 0));
    CodeWriter *outside = std::exchange(writer_, &inside);
    text_.setWriter(inside);
    body();
    writer_ = outside;
    text_.setWriter(*outside);
    if (shape_.isRagged || usesColumn(inside.text())) w().line("const int c = {0}{1};", first, my);
    if (shape_.isRagged) guard.emplace(w().block("if (c < {0})", plan_.columns.value()));
    w().append(inside.text());
  }

  static bool usesColumn(llvm::StringRef text) { // the word `c`
    auto isPart = [](char c) { return llvm::isAlnum(c) || c == '_'; };
    for (size_t i = 0; i < text.size(); ++i)
      if (text[i] == 'c' && (i == 0 || !isPart(text[i - 1])) && (i + 1 == text.size() || !isPart(text[i + 1])))
        return true;
    return false;
  }

  // A block has several rows, not one a unit.
  bool hasChunks() const { return !plan_.sums.empty() || !transposed_.empty(); }

  void writeKernel() {
    std::string rows = k_.dim(plan_.rows);
    if (shape_.isWarp && !hasChunks())
      w().line("const i64 row = (i64)blockIdx.x * {0} + threadIdx.x / 32; // a warp a row", shape_.warps);
    else
      w().line("const i64 {0} = blockIdx.x;{1}", hasChunks() ? "chunk" : "row",
               shape_.isWarp ? "" : " // a block a row");
    if (shape_.isWarp && hasChunks())
      w().raw("const int warp = threadIdx.x / 32, thread = threadIdx.x % 32; // a warp a row");
    else
      w().raw(shape_.isWarp ? "const int thread = threadIdx.x % 32;" : "const int thread = threadIdx.x;");
    for (const LoopStep &step : plan_.main) text_.prepare(step);
    std::string note = shape_.isWarp ? "a warp a row" : "a block a row";
    Count grid = plan_.rows;
    if (!hasChunks()) {
      if (shape_.isWarp) {
        w().line("if (row >= {0}) return; // whole warps", rows);
        grid = Count::ceilDiv(plan_.rows, shape_.warps);
      }
      writeRow();
    } else if (shape_.chunkRows == 1) {
      w().raw("const i64 row = chunk;");
      startSums();
      writeRow();
      storeSums();
    } else {
      chunkOfRows(rows);
      startSums();
      startMemory();
      if (shape_.tileRows && !shape_.chunkRows)
        tilesOfRows();
      else
        overRows("firstRow", "endRow");
      storeSums();
      note += ", ";
      if (shape_.chunkRows) note += std::to_string(*shape_.chunkRows / (shape_.isWarp ? shape_.warps : 1)) + " rows ";
      note += "one after another";
      grid = shape_.chunks;
    }
    note += shape_.usesRing       ? "; rows come through shared memory"
            : shape_.isPersistent ? "; the row stays in registers"
                                  : "; a row is read once a sweep";
    if (shape_.tileRows) note += llvm::formatv("; transposed in tiles of {0} rows", shape_.tileRows).str();
    k_.finish({.grid = grid,
               .block = static_cast<unsigned>(shape_.blockThreads()),
               .note = note,
               .sharedBytes = static_cast<unsigned>(sharedBytes_),
               .blocksTogether = shape_.blocksTogether});
  }

  // Which rows a block has. With tiles, its first one and the way to the next.
  void chunkOfRows(const std::string &rows) {
    if (shape_.chunkRows) {
      w().line("const i64 firstRow = chunk * {0};", *shape_.chunkRows);
      w().line("const i64 endRow = firstRow + {0} < {1} ? firstRow + {0} : {1};", *shape_.chunkRows, rows);
    } else if (shape_.tileRows) {
      w().line(
          "const i64 firstRow = chunk * {0}, endRow = {1}, jump = (i64)gridDim.x * {0}; // to this block's next tile",
          shape_.tileRows, rows);
    } else {
      w().line("const i64 firstRow = {0} * chunk / gridDim.x, endRow = {0} * (chunk + 1) / gridDim.x;", rows);
    }
  }

  // Dynamic shared memory: rows on their way, then tiles.
  void startMemory() {
    if (shape_.usesRing || !transposed_.empty()) w().raw("extern __shared__ __align__(16) u8 rowMemory[];");
    if (shape_.usesRing) {
      ring_.start("rowMemory");
      sharedBytes_ = ring_.bytes();
    }
    if (transposed_.empty()) return;
    transposed_.declare(w(), sharedBytes_ ? "rowMemory + " + std::to_string(sharedBytes_) : "rowMemory");
    sharedBytes_ += transposed_.bytes();
  }

  void tilesOfRows() {
    auto tiles = w().block("for (i64 tileRow = firstRow; tileRow < endRow; tileRow += jump)");
    w().line("const i64 tileEnd = tileRow + {0} < endRow ? tileRow + {0} : endRow;", shape_.tileRows);
    overRows("tileRow", "tileEnd");
    w().raw("__syncthreads(); // the tile is free for the next rows");
  }

  void overRows(const std::string &first, const std::string &end) {
    tileRow_ = first;
    {
      auto loop = shape_.isWarp
                      ? w().block("for (i64 row = {0} + warp; row < {1}; row += {2})", first, end, shape_.warps)
                      : w().block("for (i64 row = {0}; row < {1}; ++row)", first, end);
      writeRow();
      if (shape_.usesRing) w().raw("stage ^= 1;");
    }
    if (!transposed_.empty()) transposed_.store(w(), first, end, "");
  }

  void writeRow() {
    if (shape_.isPersistent) loadRow();
    for (unsigned at = 0; at <= schedule_.lastSweep(); ++at) {
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
      if (!variesOverColumns(schedule_.step(plan_.sums[i].of).span))
        accumulate(running_[i], plan_.sums[i].op, plan_.sums[i].of);
  }

  void loadRow() {
    auto loads = fullLoads(plan_);
    if (loads.empty()) return;
    if (shape_.usesRing) return ring_.load();
    w().raw("// load");
    std::vector<std::string> arrays;
    for (const LoopStep *step : loads) {
      std::string array = k_.names().make(identifierFrom(step->result.name()) + std::to_string(text_.width()));
      declare(variableType(step->result.dtype()), array);
      arrays.push_back(array);
      text_.bind(step->result, lane(elements(array)));
    }
    overColumns([&] {
      for (unsigned i = 0; i < loads.size(); ++i) text_.loadInto(*loads[i], elements(arrays[i]));
    });
  }

  // Values per row (and scalars) that become known before sweep `at`.
  void rowValues(unsigned at) {
    for (const LoopStep &step : plan_.main) {
      if (variesOverColumns(step.span) || schedule_.level(step.result) != at) continue;
      if (step.kind == LoopStep::Kind::rowReduce) continue;                  // bound by the sweep before
      if (step.kind == LoopStep::Kind::load && ring_.brings(step)) continue; // bound by loadRow
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

  // "compute: sum", "compute and store": what a sweep over the columns is for.
  std::string phaseOf(unsigned at) const {
    llvm::SmallVector<llvm::StringRef, 2> reductions;
    for (const LoopStep &step : plan_.main)
      if (step.kind == LoopStep::Kind::rowReduce && schedule_.level(schedule_.reduced(step)) == at &&
          !llvm::is_contained(reductions, step.op->name()))
        reductions.push_back(step.op->name());
    bool stores = llvm::any_of(plan_.stores, [&](const LoopStore &store) {
      return variesOverColumns(store.span) && schedule_.outputSweep(store.value) == at;
    });
    return std::string(stores ? "compute and store" : "compute") + (reductions.empty() ? "" : ": ") +
           llvm::join(reductions, ", ");
  }

  void sweep(unsigned at) {
    if (schedule_.wantedBy(at).empty()) return;
    RowSchedule::Values needed = schedule_.neededBy(at);

    w().line("// {0}", phaseOf(at));
    ring_.await(needed);
    llvm::SmallVector<const LoopStep *, 4> reductions;
    llvm::SmallVector<std::string, 4> sums;
    llvm::SmallVector<std::pair<const LoopStep *, std::string>, 1> expSums; // by their maximum
    for (const LoopStep &step : plan_.main) {
      if (step.kind != LoopStep::Kind::rowReduce || schedule_.level(schedule_.reduced(step)) != at) continue;
      if (schedule_.isExpSum(step)) continue; // beside its maximum
      if (schedule_.expSumBeside(step)) {
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
      if (!schedule_.isKept(step.result) || schedule_.level(step.result) != at) continue;
      std::string array = text_.variableFor(step.result, step.span);
      declare(variableType(step.result.dtype()), array);
      text_.assignTo(step.result, lane(elements(array)));
    }
    overColumns([&] { sweepBody(at, needed, reductions, sums, expSums); });
    for (const LoopStep &step : plan_.main) // computed again where needed
      if (needed.contains(step.result.def()) && !schedule_.isKept(step.result)) text_.forget(step.result);
    finishReductions(reductions, sums);
    llvm::StringRef scope = shape_.isWarp ? "warp" : "block";
    for (const auto &[maximum, name] : expSums) {
      auto define = [&](const LoopStep &step, const std::string &text) {
        std::string variable = k_.names().make(step.result.name().empty() ? step.op->name() : step.result.name());
        w().noted("const float " + variable + " = " + text + ";", step.result.type().str());
        text_.bind(step.result, variable);
        return variable;
      };
      std::string largest = define(*maximum, llvm::formatv("{0}Reduce<Max>({1}.largest)", scope, name).str());
      define(*schedule_.expSumBeside(*maximum),
             llvm::formatv("{0}Reduce<Sum>({1}.sumAt({2}))", scope, name, largest).str());
    }
  }

  void sweepBody(unsigned at, const RowSchedule::Values &needed, llvm::ArrayRef<const LoopStep *> reductions,
                 llvm::ArrayRef<std::string> sums, llvm::ArrayRef<std::pair<const LoopStep *, std::string>> expSums) {
    for (const LoopStep &step : plan_.main) {
      if (step.kind != LoopStep::Kind::load || !needed.contains(step.result.def())) continue;
      if (ring_.brings(step))
        ring_.read(step);
      else
        text_.load(step);
    }
    llvm::MapVector<const ValueDef *, std::string> arrays; // what is used whole in this sweep, as an array a turn
    auto needsArray = [&](Value v, Span span) {
      if (!text_.isWide(span) || arrays.count(v.def())) return;
      if (text_.isBound(v) || schedule_.isKept(v)) {
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
      if (schedule_.outputSweep(store.value) == at) needsArray(store.value, store.span);
    for (const auto &[maximum, name] : expSums) needsArray(schedule_.reduced(*maximum), Span::full);
    {
      auto lanes = text_.laneLoop();
      for (const LoopStep &step : plan_.main)
        if (step.kind != LoopStep::Kind::load && needed.contains(step.result.def())) text_.compute(step);
      for (unsigned i = 0; i < reductions.size(); ++i)
        accumulate(sums[i], reductions[i]->op, reductions[i]->op->operand(0u));
      for (unsigned i = 0; i < plan_.sums.size(); ++i) {
        const RowsSum &sum = plan_.sums[i];
        if (!variesOverColumns(schedule_.step(sum.of).span) || schedule_.outputSweep(sum.of) != at) continue;
        if (sum.span == Span::scalar)
          accumulate(running_[i], sum.op, sum.of);
        else if (shape_.isPersistent)
          accumulate(lane(elements(running_[i])), sum.op, sum.of);
        else
          accumulateInMemory(i);
      }
    }
    for (const auto &[maximum, name] : expSums) {
      Value x = schedule_.reduced(*maximum);
      w().line("{0}.add({1});", name, text_.width() > 1 ? arrays[x.def()] : text_.spell(x));
    }
    for (const LoopStore &store : plan_.stores) {
      if (!variesOverColumns(store.span) || schedule_.outputSweep(store.value) != at) continue;
      std::optional<CodeWriter::Block> once;
      if (store.span == Span::column) once.emplace(w().block("if (row == 0)"));
      if (store.isTransposed)
        transposed_.put(w(), store, "(int)(row - " + tileRow_ + ")", "c",
                        text_.isWide(store.span) ? arrays[store.value.def()] : text_.spell(store.value));
      else if (text_.isWide(store.span))
        text_.storeArray(store, arrays[store.value.def()]);
      else
        text_.storeScalar(store);
    }
  }

  void finishReductions(llvm::ArrayRef<const LoopStep *> reductions, llvm::ArrayRef<std::string> sums) {
    llvm::StringRef scope = shape_.isWarp ? "warp" : "block";
    for (unsigned i = 0; i < reductions.size(); ++i) {
      const Op &op = *reductions[i]->op;
      Value v = reductions[i]->result;
      // Several of one kind share the barriers of a block.
      llvm::SmallVector<unsigned, 4> same;
      for (unsigned j = 0; j < reductions.size(); ++j)
        if (reducer(*reductions[j]->op) == reducer(op) &&
            accumulatorType(reductions[j]->op->operand(0u).dtype()) == accumulatorType(op.operand(0u).dtype()))
          same.push_back(j);
      if (shape_.isWarp || same.size() == 1) {
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
      } else if (shape_.isPersistent) {
        declare(type, running_.back());
        std::string indent;
        if (shape_.turns > 1) w().line("for (int j = 0; j < {0}; ++j)", shape_.turns), indent += "  ";
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
    if (plan_.sums.empty()) return;
    w().raw("// store, partial sums of this chunk of rows");
    for (unsigned i = 0; i < plan_.sums.size(); ++i) {
      const RowsSum &sum = plan_.sums[i];
      std::string partials = job_.partials(k_, i, false), columns = k_.dim(plan_.columns);
      if (sum.span == Span::column) {
        if (!shape_.isPersistent) continue; // they are there
        if (shape_.isWarp) {
          std::string memory = shape_.usesRing ? "(" + accumulatorType(sum.of.dtype()).str() + " *)rowMemory, " : "";
          w().line("storeColumnSums<{0}, {1}, {2}>({3}{4} + chunk * {5}, {5}, {6});", reducer(*sum.op), shape_.warps,
                   text_.width(), memory, partials, columns, running_[i]);
          continue;
        }
        overColumns([&] {
          auto lanes = text_.laneLoop();
          w().line("{0}[chunk * {1} + c{2}] = {3};", partials, columns, text_.width() > 1 ? " + e" : "",
                   lane(elements(running_[i])));
        });
        continue;
      }
      bool isOfEachThread = variesOverColumns(schedule_.step(sum.of).span);
      if (!isOfEachThread && shape_.isWarp) // all lanes have the same: the first one counts
        w().line("if (thread > 0) {0} = {1};", running_[i], identity(*sum.op, sum.of.dtype()));
      if (isOfEachThread || shape_.isWarp) w().line("{0} = blockReduce<{1}>({0});", running_[i], reducer(*sum.op));
      w().line("if (threadIdx.x == 0) {0}[chunk] = {1};", partials, running_[i]);
    }
  }

  CodeWriter &w() { return *writer_; }

  LoopJob &job_;
  const LoopPlan &plan_;
  KernelBuilder k_;
  LoopText text_;
  CodeWriter *writer_ = &k_.code(); // where lines go now
  const RowShape shape_;
  TransposedStores transposed_;
  const RowSchedule schedule_;
  RowRingText ring_{k_, text_, plan_, shape_, [this](llvm::function_ref<void()> body) { overColumns(body); }};
  int64_t sharedBytes_ = 0;          // of dynamic shared memory
  std::string tileRow_;              // the first row of the tile
  std::vector<std::string> running_; // variables of plan_.sums
};

} // namespace

void emitRow(LoopJob &job) { RowWriter(job).write(); }

} // namespace fusor::codegen
