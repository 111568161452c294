#include "runtime/cpu/loop/loop_kernel.h"
#include "ir/graph/bug.h"
#include "ir/ops/counter_rng.h"
#include "runtime/cpu/parallel.h"
#include "runtime/cpu/scratch.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>
#include <limits>

namespace fusor::runtime {

using codegen::LoopPlan;
using codegen::LoopStep;
using lanes::Mode;
using Kind = LaneInstruction::Kind;
using Home = LaneRegister::Home;

namespace {

constexpr int64_t kBlockElements = 2048; // a full f32 register is 8 KiB: a handful of them fit in an L1 of 32 to 48 KiB
constexpr int64_t kTaskElements = 16384; // a task of one thread: a few us
constexpr int64_t kMaxChunks = 64;       // partial results of a sum over rows
constexpr int64_t kColumnTile = 8192;    // columns of one task in the column phases

template <typename T> T firstOf(lanes::Reduce reduce) {
  constexpr T inf = std::numeric_limits<T>::infinity();
  return reduce == lanes::Reduce::sum ? T(0) : reduce == lanes::Reduce::max ? -inf : inf;
}

double combine(lanes::Reduce reduce, double a, double b) {
  if (reduce == lanes::Reduce::sum) return a + b;
  if (a != a) return a;
  if (b != b) return b;
  return reduce == lanes::Reduce::max ? std::max(a, b) : std::min(a, b);
}

int64_t readIndex(ir::DType type, const char *data, int64_t at) {
  switch (type) {
  case ir::DType::i32: return reinterpret_cast<const int32_t *>(data)[at];
  case ir::DType::i64: return reinterpret_cast<const int64_t *>(data)[at];
  default: return static_cast<int64_t>(ir::loadElement(type, data, at));
  }
}

} // namespace

// One phase of one block: registers have addresses, instructions run.
class BlockRun {
public:
  BlockRun(const LoopKernel &kernel, const LaneProgram &program, const StepMemory &memory, const LoopRectangle &at)
      : kernel_(kernel), program_(program), memory_(memory), at_(at), k_(*kernel.kernels_) {}

  void setScratch(char *scratch, int64_t blockElements, int64_t blockRows) {
    slotBytes_ = llvm::alignTo(blockElements * 4, 64);
    rowBytes_ = llvm::alignTo(blockRows * 8, 64);
    scratch_ = scratch;
  }
  static int64_t scratchBytes(const LaneProgram &program, int64_t blockElements, int64_t blockRows) {
    return (program.slots[0] + 2 * program.slots[1]) * llvm::alignTo(blockElements * 4, 64) +
           program.rowSlots * llvm::alignTo(blockRows * 8, 64) + 64;
  }

  void run(llvm::ArrayRef<LaneInstruction> instructions) {
    for (const LaneInstruction &instruction : instructions) run(instruction);
  }

  void store(llvm::ArrayRef<LaneStore> stores, bool (*wanted)(Span)) {
    for (const LaneStore &s : stores)
      if (wanted(s.span)) store(s);
  }

  void addSum(const LaneSum &sum, bool isFirst, int64_t columnTile) {
    const LaneRegister &reg = program_.registers[sum.reg];
    if (reg.lane == Lane::f32)
      addSum<float>(sum, reg, isFirst, columnTile);
    else
      addSum<double>(sum, reg, isFirst, columnTile);
  }

private:
  const LoopKernel &kernel_;
  const LaneProgram &program_;
  const StepMemory &memory_;
  const LoopRectangle &at_;
  const lanes::Kernels &k_;
  char *scratch_ = nullptr;
  int64_t slotBytes_ = 0, rowBytes_ = 0;

  template <typename T> const lanes::Table<T> &table() const {
    if constexpr (sizeof(T) == 4)
      return k_.f32;
    else
      return k_.f64;
  }

  // Where the register's first element of this block is, and the elements between its rows.
  struct Place {
    char *data;
    int64_t stride;
    Span span;
  };
  Place place(int number) const {
    const LaneRegister &r = program_.registers[number];
    int64_t size = laneBytes(r.lane);
    switch (r.home) {
    case Home::slot:
      if (r.span == Span::row)
        return {scratch_ + (program_.slots[0] + 2 * program_.slots[1]) * slotBytes_ + r.slot * rowBytes_, 1, r.span};
      return {scratch_ + (r.lane == Lane::f32 ? r.slot * slotBytes_ : (program_.slots[0] + 2 * r.slot) * slotBytes_),
              at_.columns, r.span};
    case Home::shared: return {memory_.shared + r.offset + (r.span == Span::column ? at_.column * size : 0), 0, r.span};
    case Home::input: return {const_cast<char *>(memory_.inputs[r.port]) + inMemory(r) * size, r.rowStride, r.span};
    case Home::output: return {memory_.outputs[r.port] + inMemory(r) * size, r.rowStride, r.span};
    case Home::accumulator: return {const_cast<char *>(at_.accumulator), at_.accumulatorStride, r.span};
    }
    llvm_unreachable("every home is handled above");
  }
  int64_t inMemory(const LaneRegister &r) const {
    int64_t at = r.offset;
    if (r.span == Span::full || r.span == Span::row) at += at_.row * r.rowStride;
    if (r.span == Span::full || r.span == Span::column) at += at_.column;
    return at;
  }

  // Lanes that an instruction with a result of this span makes in one go.
  int64_t count(Span span) const {
    switch (span) {
    case Span::full: return at_.rows * at_.columns;
    case Span::row: return at_.rows;
    case Span::column: return at_.columns;
    case Span::scalar: return 1;
    }
    llvm_unreachable("every span is handled above");
  }
  bool isPacked(const Place &p) const { return p.span == Span::full && (p.stride == at_.columns || at_.rows == 1); }
  // An operand that is one vector, or one number, for the whole block.
  bool isWhole(const Place &p) const {
    return isPacked(p) || p.span == Span::scalar || (at_.rows == 1 && p.span != Span::full);
  }
  bool isVector(const Place &p, Span result) const {
    return result == Span::full ? p.span == Span::full || p.span == Span::column : p.span == result;
  }
  template <typename T> const T *ofRow(const Place &p, int64_t row) const {
    auto *data = reinterpret_cast<const T *>(p.data);
    return p.span == Span::full ? data + row * p.stride : p.span == Span::row ? data + row : data;
  }
  template <typename T> T *ofRow(Place &p, int64_t row) const { return reinterpret_cast<T *>(p.data) + row * p.stride; }

  void run(const LaneInstruction &i) {
    const LaneRegister &dst = program_.registers[i.dst];
    switch (i.kind) {
    case Kind::load: return load(program_.loads[i.index], place(i.dst));
    case Kind::sum: return; // LoopKernel put it there
    case Kind::random: return random(program_.loads[i.index], place(i.dst));
    case Kind::toF64: return convert<float, double>(i, k_.convert.f32ToF64);
    case Kind::toF32: return convert<double, float>(i, k_.convert.f64ToF32);
    default: break;
    }
    if (i.kind == Kind::rowReduce ? program_.registers[i.a].lane == Lane::f32 : dst.lane == Lane::f32)
      lanes<float>(i, dst.span);
    else
      lanes<double>(i, dst.span);
  }

  template <typename T> void lanes(const LaneInstruction &i, Span span) {
    Place y = place(i.dst);
    switch (i.kind) {
    case Kind::constant: *reinterpret_cast<T *>(y.data) = static_cast<T>(i.number); return;
    case Kind::unary: {
      auto *f = table<T>().unary[i.fn];
      return forRows1<T, T>(place(i.a), y, span, f);
    }
    case Kind::round:
      return forRows1<T, T>(place(i.a), y, span,
                            [&](const T *x, T *out, int64_t n) { roundLanes(k_, i.dtype, x, out, n, i.fn == 0); });
    case Kind::binary: return binary<T>(i, y, span);
    case Kind::select: return select<T>(i, y, span);
    case Kind::splat: return splat<T>(place(i.a), y, span);
    case Kind::iota: {
      auto *out = reinterpret_cast<T *>(y.data);
      int64_t first = span == Span::row ? at_.row : at_.column;
      for (int64_t n = count(span), j = 0; j < n; ++j) out[j] = static_cast<T>((first + j) / i.inner % i.extent);
      return;
    }
    case Kind::rowReduce: {
      Place x = place(i.a);
      auto *out = reinterpret_cast<T *>(y.data);
      for (int64_t row = 0; row < at_.rows; ++row) out[row] = table<T>().reduce[i.fn](ofRow<T>(x, row), at_.columns);
      return;
    }
    default: FUSOR_BUG("instruction {0} is not one of lanes", static_cast<int>(i.kind));
    }
  }

  template <typename X, typename Y, typename F> void forRows1(Place x, Place y, Span span, F f) {
    if (span != Span::full || (isPacked(x) && isPacked(y)))
      return f(reinterpret_cast<const X *>(x.data), reinterpret_cast<Y *>(y.data), count(span));
    for (int64_t row = 0; row < at_.rows; ++row) f(ofRow<X>(x, row), ofRow<Y>(y, row), at_.columns);
  }
  template <typename X, typename Y> void convert(const LaneInstruction &i, void (*f)(const X *, Y *, int64_t)) {
    forRows1<X, Y>(place(i.a), place(i.dst), program_.registers[i.dst].span, f);
  }

  template <typename T> void binary(const LaneInstruction &i, Place y, Span span) {
    Place a = place(i.a), b = place(i.b);
    bool va = isVector(a, span), vb = isVector(b, span);
    if (!va && !vb) va = vb = true; // a scalar result
    Mode mode = va && vb ? Mode::vectors : va ? Mode::rightScalar : Mode::leftScalar;
    auto *f = table<T>().binary[i.fn][static_cast<int>(mode)];
    auto *out = reinterpret_cast<T *>(y.data);
    if (span != Span::full || (isWhole(a) && isWhole(b) && isPacked(y)))
      return f(reinterpret_cast<const T *>(a.data), reinterpret_cast<const T *>(b.data), out, count(span));
    for (int64_t row = 0; row < at_.rows; ++row) f(ofRow<T>(a, row), ofRow<T>(b, row), ofRow<T>(y, row), at_.columns);
  }

  template <typename T> void select(const LaneInstruction &i, Place y, Span span) {
    Place c = place(i.a), a = place(i.b), b = place(i.c);
    int64_t aStep = isVector(a, span), bStep = isVector(b, span);
    auto *f = table<T>().select;
    if (span != Span::full || (isWhole(a) && isWhole(b) && isPacked(c) && isPacked(y)))
      return f(reinterpret_cast<const T *>(c.data), reinterpret_cast<const T *>(a.data), aStep,
               reinterpret_cast<const T *>(b.data), bStep, reinterpret_cast<T *>(y.data), count(span));
    for (int64_t row = 0; row < at_.rows; ++row)
      f(ofRow<T>(c, row), ofRow<T>(a, row), aStep, ofRow<T>(b, row), bStep, ofRow<T>(y, row), at_.columns);
  }

  template <typename T> void splat(Place x, Place y, Span span) {
    if (span != Span::full || x.span == Span::scalar) {
      if (x.span != Span::scalar) FUSOR_BUG("a value is narrowed in a loop");
      if (span != Span::full || isPacked(y))
        return table<T>().fill(*reinterpret_cast<const T *>(x.data), reinterpret_cast<T *>(y.data), count(span));
    }
    for (int64_t row = 0; row < at_.rows; ++row) {
      if (x.span == Span::column)
        std::memcpy(ofRow<T>(y, row), x.data, at_.columns * sizeof(T));
      else
        table<T>().fill(*ofRow<T>(x, row), ofRow<T>(y, row), at_.columns);
    }
  }

  void load(const LaneLoad &load, Place y) {
    int64_t size = laneBytes(laneOf(load.dtype));
    const char *data = memory_.inputs[load.input];
    const AccessMap &map = load.map;
    if (load.isGather) return gather(load, y, size);
    switch (y.span) {
    case Span::scalar: return loadLanes(k_, load.dtype, data, map.offset(), 1, y.data, 1);
    case Span::row:
      if (map.rowsAreAffine())
        return loadLanes(k_, load.dtype, data, map(at_.row, 0), map.rowStride(), y.data, at_.rows);
      for (int64_t row = 0; row < at_.rows; ++row)
        loadLanes(k_, load.dtype, data, map(at_.row + row, 0), 1, y.data + row * size, 1);
      return;
    case Span::column: return loadRow(load, data, map.offset(), y.data);
    case Span::full:
      if (map.rowsAreAffine() && map.columnsAreAffine() && map.columnStride() == 1 && map.rowStride() == at_.columns &&
          y.stride == at_.columns)
        return loadLanes(k_, load.dtype, data, map(at_.row, at_.column), 1, y.data, at_.rows * at_.columns);
      for (int64_t row = 0; row < at_.rows; ++row)
        loadRow(load, data, map.offset() + map.rowOffset(at_.row + row), y.data + row * y.stride * size);
    }
  }

  // The columns of this block, from a row that starts at element `base`.
  void loadRow(const LaneLoad &load, const char *data, int64_t base, char *to) {
    const AccessMap &map = load.map;
    if (map.columnsAreAffine())
      return loadLanes(k_, load.dtype, data, base + map.columnOffset(at_.column), map.columnStride(), to, at_.columns);
    int64_t size = laneBytes(laneOf(load.dtype));
    for (int64_t c = 0; c < at_.columns; ++c)
      loadLanes(k_, load.dtype, data, base + map.columnOffset(at_.column + c), 1, to + c * size, 1);
  }

  // Row number of the table for an element of the loop, or -1.
  int64_t tableRow(const LaneLoad &load, int64_t at) const {
    int64_t index = readIndex(load.indicesType, memory_.inputs[load.indices], at);
    if (index < 0) index += load.tableRows;
    return index < 0 || index >= load.tableRows ? -1 : index;
  }

  void gather(const LaneLoad &load, Place y, int64_t size) {
    bool byRow = !load.indexMap.dependsOnColumns();
    int64_t rows = y.span == Span::full || y.span == Span::row ? at_.rows : 1;
    int64_t columns = y.span == Span::full || y.span == Span::column ? at_.columns : 1;
    int64_t row0 = y.span == Span::full || y.span == Span::row ? at_.row : 0;
    int64_t column0 = y.span == Span::full || y.span == Span::column ? at_.column : 0;
    int64_t stride = y.span == Span::full ? y.stride : 1;
    const char *data = memory_.inputs[load.input];
    for (int64_t row = 0; row < rows; ++row) {
      char *to = y.data + row * stride * size;
      if (byRow) {
        int64_t index = tableRow(load, load.indexMap(row0 + row, 0));
        if (index < 0)
          std::memset(to, 0, columns * size);
        else if (columns > 1 || y.span == Span::full)
          loadRow(load, data, load.map.offset() + load.map.rowOffset(row0 + row) + index * load.tableRowStride, to);
        else
          loadLanes(k_, load.dtype, data, load.map(row0 + row, 0) + index * load.tableRowStride, 1, to, 1);
        continue;
      }
      for (int64_t c = 0; c < columns; ++c) {
        int64_t index = tableRow(load, load.indexMap(row0 + row, column0 + c));
        if (index < 0)
          std::memset(to + c * size, 0, size);
        else
          loadLanes(k_, load.dtype, data, load.map(row0 + row, column0 + c) + index * load.tableRowStride, 1,
                    to + c * size, 1);
      }
    }
  }

  void random(const LaneLoad &load, Place y) {
    auto seed = readIndex(load.dtype, memory_.inputs[load.input], 0);
    uint64_t key = ir::rngKey(static_cast<uint64_t>(seed), static_cast<uint64_t>(load.stream));
    bool hasRows = y.span == Span::full || y.span == Span::row,
         hasColumns = y.span == Span::full || y.span == Span::column;
    for (int64_t row = 0, rows = hasRows ? at_.rows : 1; row < rows; ++row) {
      auto *out = reinterpret_cast<float *>(y.data) + (y.span == Span::full ? row * y.stride : row);
      int64_t base = load.map.offset() + (hasRows ? load.map.rowOffset(at_.row + row) : 0);
      for (int64_t c = 0, columns = hasColumns ? at_.columns : 1; c < columns; ++c)
        out[c] =
            ir::rngUniform(key, static_cast<uint64_t>(base + (hasColumns ? load.map.columnOffset(at_.column + c) : 0)));
    }
  }

  void store(const LaneStore &s) {
    Place x = place(s.reg);
    char *data = memory_.outputs[s.output];
    int64_t size = laneBytes(laneOf(s.dtype));
    const AccessMap &map = s.map;
    switch (s.span) {
    case Span::scalar: return storeLanes(k_, s.dtype, x.data, data, map.offset(), 1, 1);
    case Span::row:
      if (map.rowsAreAffine()) return storeLanes(k_, s.dtype, x.data, data, map(at_.row, 0), map.rowStride(), at_.rows);
      for (int64_t row = 0; row < at_.rows; ++row)
        storeLanes(k_, s.dtype, x.data + row * size, data, map(at_.row + row, 0), 1, 1);
      return;
    case Span::column: return storeRow(s, x.data, data, map.offset());
    case Span::full:
      if (isPacked(x) && map.rowsAreAffine() && map.columnsAreAffine() && map.columnStride() == 1 &&
          map.rowStride() == at_.columns)
        return storeLanes(k_, s.dtype, x.data, data, map(at_.row, at_.column), 1, at_.rows * at_.columns);
      for (int64_t row = 0; row < at_.rows; ++row)
        storeRow(s, x.data + row * x.stride * size, data, map.offset() + map.rowOffset(at_.row + row));
    }
  }

  void storeRow(const LaneStore &s, const char *from, char *data, int64_t base) {
    if (s.map.columnsAreAffine())
      return storeLanes(k_, s.dtype, from, data, base + s.map.columnOffset(at_.column), s.map.columnStride(),
                        at_.columns);
    int64_t size = laneBytes(laneOf(s.dtype));
    for (int64_t c = 0; c < at_.columns; ++c)
      storeLanes(k_, s.dtype, from + c * size, data, base + s.map.columnOffset(at_.column + c), 1, 1);
  }

  template <typename T> void addSum(const LaneSum &sum, const LaneRegister &reg, bool isFirst, int64_t columnTile) {
    Place x = place(sum.reg);
    auto fn = static_cast<int>(sum.reduce);
    if (sum.span == Span::column) {
      T *into = reinterpret_cast<T *>(memory_.shared + sum.partialOffset) + at_.chunk * kernel_.columns() + at_.column;
      if (isFirst) table<T>().fill(firstOf<T>(sum.reduce), into, at_.columns);
      for (int64_t row = 0; row < at_.rows; ++row) table<T>().accumulate[fn](ofRow<T>(x, row), into, at_.columns);
      return;
    }
    double &into =
        reinterpret_cast<double *>(memory_.shared + sum.partialOffset)[at_.chunk * kernel_.columnTiles_ + columnTile];
    if (isFirst) into = firstOf<double>(sum.reduce);
    if (reg.span == Span::row && at_.column > 0) return; // counted with the first columns
    if (reg.span != Span::full || isPacked(x)) {
      into = combine(sum.reduce, into, table<T>().reduce[fn](reinterpret_cast<const T *>(x.data), count(reg.span)));
      return;
    }
    for (int64_t row = 0; row < at_.rows; ++row)
      into = combine(sum.reduce, into, table<T>().reduce[fn](ofRow<T>(x, row), at_.columns));
  }
};

LoopKernel::LoopKernel(const LoopPlan &plan, const ir::SymbolValues &symbols, const Options &options)
    : extents_(extentsOf(plan, symbols)), kernels_(&lanes::kernelsFor(options.isa)), isFlat_(options.isFlat) {
  if (isFlat_) {
    extents_.columns *= extents_.rows;
    extents_.rows = 1;
    extents_.rowDims = 0;
  }
  LaneContext context{extents_, symbols, options.inputs, options.outputs, options.overlaps, isFlat_, 0};
  hasRowReduce_ = plan.hasRowReduction();
  main_ = buildMain(plan, context, sums_);
  context.firstSharedByte = main_.sharedBytes;
  finish_ = buildFinish(plan, context, sums_);

  // The geometry: columns in tiles unless a row is needed whole, rows in chunks where something is summed over them.
  int64_t R = extents_.rows, C = extents_.columns;
  tileColumns_ = hasRowReduce_ || C <= 2 * kBlockElements ? std::max<int64_t>(C, 1) : kBlockElements;
  if (isFlat_) tileColumns_ = kTaskElements;
  if (options.chunks) tileColumns_ = std::max<int64_t>(C, 1); // the caller's tiles
  columnTiles_ = llvm::divideCeil(C, tileColumns_);
  if (hasRowReduce_) columnTiles_ = 1; // no columns: the sum of nothing is 0
  int64_t blockRows = std::max<int64_t>(1, kBlockElements / tileColumns_);
  int64_t wanted = std::max<int64_t>(1, kTaskElements / tileColumns_);
  if (!sums_.empty()) wanted = std::max<int64_t>(wanted, llvm::divideCeil(R, kMaxChunks));
  chunkRows_ = llvm::alignTo(wanted, blockRows);
  chunks_ = options.chunks ? options.chunks : llvm::divideCeil(R, chunkRows_);
  for (const LaneRegister &reg : main_.registers)
    if (reg.home == Home::accumulator) accumulatorBytes_ = laneBytes(reg.lane);

  int64_t at = std::max(main_.sharedBytes, finish_.sharedBytes);
  for (LaneSum &sum : sums_) {
    sum.partialOffset = at;
    int64_t elements = sum.span == Span::column ? chunks_ * C : chunks_ * columnTiles_;
    int64_t size = sum.span == Span::column ? laneBytes(main_.registers[sum.reg].lane) : 8;
    at += llvm::alignTo(elements * size, 64);
  }
  sharedBytes_ = at;
}

bool LoopKernel::canBeFlat(const LoopPlan &plan) {
  auto fits = [](const codegen::Access &access, Span span) {
    return !access.gather && (span == Span::scalar || (span == Span::full && access.contiguous));
  };
  for (const LoopStep &step : plan.main) {
    bool ok = true;
    if (step.kind == LoopStep::Kind::load)
      ok = fits(step.access, step.span) && step.access.input != codegen::kAccumulator;
    else if (step.kind == LoopStep::Kind::iota || step.kind == LoopStep::Kind::rowReduce ||
             step.kind == LoopStep::Kind::random)
      ok = false;
    else
      ok = step.span == Span::full || step.span == Span::scalar;
    if (!ok) return false;
  }
  for (const codegen::RowsSum &sum : plan.sums)
    if (sum.span != Span::scalar) return false;
  for (const codegen::LoopStore &store : plan.stores)
    if (!fits(store.access, store.span)) return false;
  return true;
}

bool LoopKernel::onlyStoresAccumulator() const {
  return main_.block.empty() && main_.stores.size() == 1 && sums_.empty() && finish_.stores.empty() &&
         main_.registers[main_.stores[0].reg].home == Home::accumulator && main_.stores[0].dtype == ir::DType::f32 &&
         main_.stores[0].span == Span::full && main_.stores[0].output == 0 && main_.stores[0].map.rowsAreAffine() &&
         main_.stores[0].map.columnsAreAffine() && main_.stores[0].map.columnStride() == 1 &&
         main_.stores[0].map.offset() == 0 && (rows() == 1 || main_.stores[0].map.rowStride() == columns());
}

void LoopKernel::run(const StepMemory &memory, Workers &workers) const {
  prepare(memory, workers);
  workers.forEach(chunks_ * columnTiles_, [&](int64_t task) {
    LoopRectangle at;
    at.chunk = task / columnTiles_;
    at.row = at.chunk * chunkRows_;
    at.rows = std::min(chunkRows_, extents_.rows - at.row);
    at.column = task % columnTiles_ * tileColumns_;
    at.columns = std::min(tileColumns_, extents_.columns - at.column);
    block(memory, at);
  });
  finish(memory, workers);
}

void LoopKernel::prepare(const StepMemory &memory, Workers &workers) const {
  LoopRectangle one{0, 1, 0, 1, 0, nullptr, 0};
  BlockRun run(*this, main_, memory, one);
  run.run(main_.scalars);
  columnPhase(main_, memory, workers, false);
}

void LoopKernel::columnPhase(const LaneProgram &program, const StepMemory &memory, Workers &workers, bool sums) const {
  auto isColumn = [](Span span) { return span == Span::column; };
  bool stores = llvm::any_of(program.stores, [&](const LaneStore &s) { return isColumn(s.span); });
  if (program.columns.empty() && !stores) return;
  workers.forEach(llvm::divideCeil(extents_.columns, kColumnTile), [&](int64_t tile) {
    LoopRectangle at{0, 1, tile * kColumnTile, 0, 0, nullptr, 0};
    at.columns = std::min(kColumnTile, extents_.columns - at.column);
    if (sums)
      for (const LaneInstruction &i : program.columns) {
        if (i.kind != Kind::sum) continue;
        const LaneSum &sum = sums_[i.index];
        auto add = [&]<typename T>(const lanes::Table<T> &table) {
          T *into = reinterpret_cast<T *>(memory.shared + program.registers[i.dst].offset) + at.column;
          const T *from = reinterpret_cast<const T *>(memory.shared + sum.partialOffset) + at.column;
          table.fill(firstOf<T>(sum.reduce), into, at.columns);
          for (int64_t chunk = 0; chunk < chunks_; ++chunk)
            table.accumulate[static_cast<int>(sum.reduce)](from + chunk * extents_.columns, into, at.columns);
        };
        if (program.registers[i.dst].lane == Lane::f32)
          add(kernels_->f32);
        else
          add(kernels_->f64);
      }
    BlockRun run(*this, program, memory, at);
    run.run(program.columns);
    run.store(program.stores, [](Span span) { return span == Span::column; });
  });
}

void LoopKernel::block(const StepMemory &memory, const LoopRectangle &at) const {
  int64_t blockColumns = hasRowReduce_ || at.columns <= 2 * kBlockElements ? at.columns : kBlockElements;
  if (at.rows == 0 || (at.columns == 0 && !hasRowReduce_)) return;
  int64_t blockRows = std::clamp<int64_t>(kBlockElements / std::max<int64_t>(blockColumns, 1), 1, at.rows);
  char *scratch = threadScratch(ScratchUse::lanes, BlockRun::scratchBytes(main_, blockRows * blockColumns, blockRows));
  int64_t columnTile = isFlat_ || columnTiles_ > 1 ? at.column / tileColumns_ : 0;
  for (int64_t column = 0; column < std::max<int64_t>(at.columns, 1); column += std::max<int64_t>(blockColumns, 1))
    for (int64_t row = 0; row < at.rows; row += blockRows) {
      LoopRectangle b = at;
      b.row += row, b.column += column;
      b.rows = std::min(blockRows, at.rows - row);
      b.columns = std::min(blockColumns, at.columns - column);
      if (at.accumulator) b.accumulator += (row * at.accumulatorStride + column) * accumulatorBytes_;
      BlockRun run(*this, main_, memory, b);
      run.setScratch(scratch, blockRows * blockColumns, blockRows);
      run.run(main_.block);
      for (const LaneSum &sum : sums_)
        run.addSum(sum, row == 0 && (column == 0 || sum.span == Span::column), columnTile);
      run.store(main_.stores, [](Span span) { return span == Span::full || span == Span::row; });
    }
}

void LoopKernel::flat(const StepMemory &memory, int64_t first, int64_t count) const {
  block(memory, {0, 1, first, count, 0, nullptr, 0});
}

void LoopKernel::combineScalarSums(const StepMemory &memory) const {
  for (const LaneInstruction &i : finish_.scalars) {
    if (i.kind != Kind::sum) continue;
    const LaneSum &sum = sums_[i.index];
    const auto *partial = reinterpret_cast<const double *>(memory.shared + sum.partialOffset);
    double total = firstOf<double>(sum.reduce);
    for (int64_t n = 0; n < chunks_ * columnTiles_; ++n) total = combine(sum.reduce, total, partial[n]);
    char *into = memory.shared + finish_.registers[i.dst].offset;
    if (finish_.registers[i.dst].lane == Lane::f32)
      *reinterpret_cast<float *>(into) = static_cast<float>(total);
    else
      *reinterpret_cast<double *>(into) = total;
  }
}

void LoopKernel::finish(const StepMemory &memory, Workers &workers) const {
  LoopRectangle one{0, 1, 0, 1, 0, nullptr, 0};
  auto isScalar = [](Span span) { return span == Span::scalar; };
  BlockRun(*this, main_, memory, one).store(main_.stores, isScalar);
  if (finish_.stores.empty()) return;
  combineScalarSums(memory);
  BlockRun run(*this, finish_, memory, one);
  run.run(finish_.scalars);
  columnPhase(finish_, memory, workers, true);
  run.store(finish_.stores, isScalar);
}

} // namespace fusor::runtime
