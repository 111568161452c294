#include "runtime/cpu/movement_steps.h"
#include "ir/graph/bug.h"
#include "runtime/cpu/lanes/dispatch.h"
#include "runtime/cpu/loop/storage.h"
#include "runtime/cpu/parallel.h"
#include "runtime/cpu/scratch.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

namespace fusor::runtime {

using namespace ir;

namespace {

constexpr int64_t kTaskElements = 16384;
constexpr int64_t kScatterColumns = 64; // columns of one task

int64_t valueOf(const Dim &dim, const SymbolValues &symbols) {
  auto value = dim.evaluate(symbols);
  if (!value) FUSOR_BUG("{0} has no value when its copy is planned", dim.str());
  return *value;
}

template <typename T> void copyRun(const char *from, int64_t fromStride, char *to, int64_t toStride, int64_t n) {
  const T *x = reinterpret_cast<const T *>(from);
  T *y = reinterpret_cast<T *>(to);
  if (fromStride == 1 && toStride == 1)
    std::memcpy(y, x, n * sizeof(T));
  else
    for (int64_t i = 0; i < n; ++i) y[i * toStride] = x[i * fromStride];
}
void copyRun(unsigned bytes, const char *from, int64_t fromStride, char *to, int64_t toStride, int64_t n) {
  switch (bytes) {
  case 1: return copyRun<uint8_t>(from, fromStride, to, toStride, n);
  case 2: return copyRun<uint16_t>(from, fromStride, to, toStride, n);
  case 4: return copyRun<uint32_t>(from, fromStride, to, toStride, n);
  default: return copyRun<uint64_t>(from, fromStride, to, toStride, n);
  }
}

} // namespace

MovementStep::MovementStep(const codegen::MovementPlan &plan, const SymbolValues &symbols, llvm::ArrayRef<DType> inputs,
                           llvm::ArrayRef<DType> outputs, llvm::ArrayRef<int64_t> outputBytes)
    : fill_(plan.fill), startsFrom_(plan.startsFrom), dynamicOffset_(plan.dynamicOffset), dynamicDim_(plan.dynamicDim),
      fillType_(outputs[0]), outputBytes_(outputBytes[0]) {
  for (size_t i = 0; i < plan.copies.size(); ++i) {
    const codegen::StridedCopy &copy = plan.copies[i];
    Copy c{copy.input,
           i < plan.outputs.size() ? plan.outputs[i] : 0,
           {},
           {},
           {},
           valueOf(copy.inOffset, symbols),
           valueOf(copy.outOffset, symbols),
           byteSize(inputs[copy.input])};
    for (unsigned d = 0; d < copy.extents.size(); ++d) {
      int64_t extent = valueOf(copy.extents[d], symbols), in = valueOf(copy.inStrides[d], symbols),
              out = valueOf(copy.outStrides[d], symbols);
      bool isDynamic = plan.dynamicOffset && (d == plan.dynamicDim || d == plan.dynamicDim + 1);
      if (!c.extents.empty() && !isDynamic && c.inStrides.back() == in * extent &&
          c.outStrides.back() == out * extent) {
        c.extents.back() *= extent, c.inStrides.back() = in, c.outStrides.back() = out; // one run continues the other
        continue;
      }
      c.extents.push_back(extent), c.inStrides.push_back(in), c.outStrides.push_back(out);
    }
    if (c.extents.empty()) c.extents = {1}, c.inStrides = {1}, c.outStrides = {1};
    copies_.push_back(std::move(c));
  }
  if (dynamicOffset_) {
    dynamicStride_ = valueOf(plan.dynamicStride, symbols);
    dynamicLimit_ = valueOf(plan.dynamicLimit, symbols);
    dynamicType_ = inputs[*dynamicOffset_];
  }
}

void MovementStep::run(const StepMemory &memory, Workers &workers) const {
  char *out = memory.outputs[0];
  if (fill_) {
    int64_t n = outputBytes_ / byteSize(fillType_);
    if (*fill_ == 0 && !std::signbit(*fill_)) {
      std::memset(out, 0, outputBytes_);
    } else if (n) {
      storeElement(fillType_, out, 0, *fill_);
      for (int64_t done = byteSize(fillType_); done < outputBytes_; done *= 2)
        std::memcpy(out + done, out, std::min(done, outputBytes_ - done));
    }
  }
  if (startsFrom_ && memory.inputs[*startsFrom_] != out) std::memcpy(out, memory.inputs[*startsFrom_], outputBytes_);
  for (const Copy &c : copies_) {
    const char *from = memory.inputs[c.input];
    if (!dynamicOffset_) {
      copy(c, from, memory.outputs[c.output], c.outOffset, workers);
      continue;
    }
    // Rows outside [0, limit) are dropped.
    auto shift = static_cast<int64_t>(loadElement(dynamicType_, memory.inputs[*dynamicOffset_], 0));
    Copy moved = c;
    unsigned d = dynamicDim_;
    int64_t first = std::max<int64_t>(0, -shift), end = std::min(c.extents[d], dynamicLimit_ - shift);
    if (first >= end) continue;
    moved.inOffset += first * c.inStrides[d];
    moved.extents[d] = end - first;
    copy(moved, from, memory.outputs[c.output], c.outOffset + (shift + first) * dynamicStride_, workers);
  }
}

void MovementStep::copy(const Copy &c, const char *from, char *to, int64_t outOffset, Workers &workers) const {
  unsigned last = c.extents.size() - 1;
  int64_t run = c.extents[last], outer = 1;
  for (unsigned d = 0; d < last; ++d) outer *= c.extents[d];
  if (run == 0 || outer == 0) return;
  // A long single run is split, else tasks are groups of runs.
  int64_t piece = outer == 1 ? std::min(run, kTaskElements) : run, pieces = llvm::divideCeil(run, piece);
  int64_t group = std::max<int64_t>(1, kTaskElements / piece);
  workers.forEach(llvm::divideCeil(outer, group) * pieces, [&](int64_t task) {
    int64_t p = task % pieces, at = task / pieces * group;
    for (int64_t end = std::min(outer, at + group); at < end; ++at) {
      int64_t in = c.inOffset + p * piece * c.inStrides[last], out = outOffset + p * piece * c.outStrides[last];
      for (int64_t rest = at, d = last; d-- > 0; rest /= c.extents[d]) {
        in += rest % c.extents[d] * c.inStrides[d];
        out += rest % c.extents[d] * c.outStrides[d];
      }
      copyRun(c.bytes, from + in * c.bytes, c.inStrides[last], to + out * c.bytes, c.outStrides[last],
              std::min(piece, run - p * piece));
    }
  });
}

ScatterStep::ScatterStep(const codegen::ScatterPlan &plan, const SymbolValues &symbols, Isa isa)
    : plan_(plan), count_(valueOf(plan.count, symbols)), rows_(valueOf(plan.rows, symbols)),
      columns_(valueOf(plan.columns, symbols)), isa_(isa) {}

int64_t ScatterStep::sharedBytes() const {
  return isLaneType(plan_.outputType) ? 0 : rows_ * columns_ * laneBytes(laneOf(plan_.outputType));
}

// Each task owns some columns of the table and adds all updates to them, in ascending order.
void ScatterStep::run(const StepMemory &memory, Workers &workers) const {
  const lanes::Kernels &k = lanes::kernelsFor(isa_);
  Lane lane = laneOf(plan_.outputType);
  int64_t size = laneBytes(lane);
  char *table = isLaneType(plan_.outputType) ? memory.outputs[plan_.output] : memory.shared;
  const char *updates = memory.inputs[plan_.updates], *indices = memory.inputs[plan_.indices];
  workers.forEach(llvm::divideCeil(columns_, kScatterColumns), [&](int64_t task) {
    int64_t first = task * kScatterColumns, n = std::min(kScatterColumns, columns_ - first);
    alignas(64) char row[kScatterColumns * 8];
    for (int64_t r = 0; r < rows_; ++r) std::memset(table + (r * columns_ + first) * size, 0, n * size);
    for (int64_t i = 0; i < count_; ++i) {
      auto index = static_cast<int64_t>(loadElement(plan_.indicesType, indices, i));
      if (index < 0) index += rows_;
      if (index < 0 || index >= rows_) continue;
      char *into = table + (index * columns_ + first) * size;
      loadLanes(k, plan_.updatesType, updates, i * columns_ + first, 1, row, n);
      if (lane == Lane::f32)
        k.f32.accumulate[0](reinterpret_cast<float *>(row), reinterpret_cast<float *>(into), n);
      else
        k.f64.accumulate[0](reinterpret_cast<double *>(row), reinterpret_cast<double *>(into), n);
    }
    if (isLaneType(plan_.outputType)) return;
    for (int64_t r = 0; r < rows_; ++r) {
      char *from = table + (r * columns_ + first) * size;
      roundLanes(k, plan_.outputType, from, from, n);
      storeLanes(k, plan_.outputType, from, memory.outputs[plan_.output], r * columns_ + first, 1, n);
    }
  });
}

} // namespace fusor::runtime
