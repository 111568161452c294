#include "runtime/cpu/native_steps.h"
#include "ir/ops/indexing.h"
#include "ir/ops/reduction.h"
#include "ir/ops/scalar_math.h"
#include "ir/types/dtype.h"
#include "runtime/cpu/lanes/dispatch.h"
#include "runtime/cpu/loop/storage.h"
#include "runtime/cpu/parallel.h"
#include "runtime/cpu/scratch.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <cstring>
#include <limits>

namespace fusor::runtime {

using namespace ir;

namespace {

// Transformer Engine's rule, see ir/ops/quantize.cpp. Memory may be updated in place.
class AmaxUpdate : public Step {
public:
  AmaxUpdate(const Op &op, int64_t length)
      : length_(length), isMax_(llvm::StringRef(op.attr<std::string>("algo")).startswith("max")),
        finiteOnly_(llvm::StringRef(op.attr<std::string>("algo")).endswith("_finite")),
        top_(static_cast<float>(maxFinite(op.attr<DType>("dtype")) *
                                std::exp2(-static_cast<double>(op.attr<int64_t>("margin"))))) {}

  void run(const StepMemory &memory, Workers &) const override {
    const auto *history = reinterpret_cast<const float *>(memory.inputs[0]);
    float scale = *reinterpret_cast<const float *>(memory.inputs[1]),
          amax = *reinterpret_cast<const float *>(memory.inputs[2]);
    auto *next = reinterpret_cast<float *>(memory.outputs[0]);
    if (next != history) std::memmove(next, history, length_ * 4);
    if (finiteOnly_ && !std::isfinite(amax)) {
      amax = 0;
      if (length_ != 0) next[0] = 0;
    }
    if (amax != 0 && length_ != 0) {
      float used = amax;
      for (int64_t i = 1; i < length_ && isMax_; ++i)
        if (!finiteOnly_ || std::isfinite(next[i])) used = std::max(used, next[i]);
      std::memmove(next, next + 1, (length_ - 1) * 4);
      next[length_ - 1] = amax;
      next[0] = 0;
      if (used > 0 && !std::isinf(used)) scale = std::min(top_ / used, std::numeric_limits<float>::max());
    }
    *reinterpret_cast<float *>(memory.outputs[1]) = scale;
    *reinterpret_cast<float *>(memory.outputs[2]) = 1 / scale;
  }

private:
  int64_t length_;
  bool isMax_, finiteOnly_;
  float top_;
};

// A fusion of amax_updates, one after the other.
class AmaxUpdates : public Step {
public:
  AmaxUpdates(const Op &fusion, const SymbolValues &symbols) {
    auto yielded = fusion.body()->terminator()->operands();
    for (const Op &op : fusion.body()->ops()) {
      if (op.def().isTerminator) continue;
      Part part{AmaxUpdate(op, *op.operand(0u).type().elements().evaluate(symbols)), {}, {}};
      for (Value operand : op.operands()) part.inputs.push_back(operand.index());
      for (Value result : op.results()) part.outputs.push_back(llvm::find(yielded, result) - yielded.begin());
      parts_.push_back(std::move(part));
    }
  }

  void run(const StepMemory &memory, Workers &workers) const override {
    for (const Part &part : parts_) {
      const char *inputs[3];
      char *outputs[3];
      for (unsigned i = 0; i < 3; ++i) inputs[i] = memory.inputs[part.inputs[i]];
      for (unsigned i = 0; i < 3; ++i) outputs[i] = memory.outputs[part.outputs[i]];
      StepMemory own = memory;
      own.inputs = inputs, own.outputs = outputs;
      part.update.run(own, workers);
    }
  }

private:
  struct Part {
    AmaxUpdate update;
    llvm::SmallVector<unsigned, 3> inputs;
    llvm::SmallVector<unsigned, 3> outputs;
  };
  std::vector<Part> parts_;
};

class ArgReduce : public Step {
public:
  ArgReduce(const Op &op, llvm::ArrayRef<int64_t> shape)
      : dtype_(op.operand(0u).dtype()), isMin_(op.attr<std::string>("kind") == "min") {
    unsigned axis = op.site().axis("axis", shape.size());
    for (unsigned i = 0; i < shape.size(); ++i) (i < axis ? outer_ : i == axis ? n_ : inner_) *= shape[i];
  }

  void run(const StepMemory &memory, Workers &workers) const override {
    auto *y = reinterpret_cast<int32_t *>(memory.outputs[0]);
    workers.forEach(outer_ * inner_, [&](int64_t i) {
      int64_t base = i / inner_ * n_ * inner_ + i % inner_, best = 0;
      double value = n_ ? loadElement(dtype_, memory.inputs[0], base) : 0;
      for (int64_t k = 1; k < n_; ++k) { // the first of equals
        double other = loadElement(dtype_, memory.inputs[0], base + k * inner_);
        if (isMin_ ? other < value : other > value) best = k, value = other;
      }
      y[i] = static_cast<int32_t>(best);
    });
  }

private:
  DType dtype_;
  bool isMin_;
  int64_t outer_ = 1, n_ = 1, inner_ = 1;
};

// Which input of the step is operand `number` of `op`: an argument of the fusion around it, or the bare op's own
// operand. Absent for what the fusion makes itself, an iota.
std::optional<unsigned> inputOf(const Op &op, unsigned number) {
  if (!op.block()->parent()) return number;
  Value operand = op.operand(number);
  return operand.isArgument() ? std::optional<unsigned>(operand.index()) : std::nullopt;
}

// Rotary embedding in the lanes of x's dtype. The angles' cosines and sines are a table [T, half], made once per
// launch.
class Rope : public Step {
public:
  Rope(const Op &op, llvm::ArrayRef<int64_t> shape, Isa isa)
      : dtype_(op.operand(0u).dtype()), batch_(shape[0]), tokens_(shape[1]), heads_(op.attr<int64_t>("heads")),
        half_(shape[2] / heads_ / 2), base_(op.attr<double>("base")), isInterleaved_(op.attr<bool>("interleaved")),
        sign_(op.attr<bool>("inverse") ? -1.0 : 1.0), x_(*inputOf(op, 0)), positions_(inputOf(op, 1)),
        positionType_(op.operand(1).dtype()), kernels_(lanes::kernelsFor(isa)) {}

  int64_t sharedBytes() const override { return tokens_ * half_ * 2 * laneBytes(laneOf(dtype_)); }
  void run(const StepMemory &memory, Workers &workers) const override {
    if (laneOf(dtype_) == Lane::f32)
      run<float>(memory, workers);
    else
      run<double>(memory, workers);
  }

private:
  template <typename T> void run(const StepMemory &memory, Workers &workers) const {
    T *table = reinterpret_cast<T *>(memory.shared);
    workers.forEach(tokens_, [&](int64_t t) {
      double position = positions_ ? loadElement(positionType_, memory.inputs[*positions_], t) : static_cast<double>(t);
      for (int64_t i = 0; i < half_; ++i) {
        double angle = sign_ * position * std::pow(base_, -static_cast<double>(i) / static_cast<double>(half_));
        table[(t * half_ + i) * 2] = static_cast<T>(std::cos(angle));
        table[(t * half_ + i) * 2 + 1] = static_cast<T>(std::sin(angle));
      }
    });
    int64_t width = heads_ * half_ * 2, first = isInterleaved_ ? 2 : 1, second = isInterleaved_ ? 1 : half_;
    workers.forEach(batch_ * tokens_, [&](int64_t row) {
      T *x = reinterpret_cast<T *>(threadScratch(ScratchUse::lanes, width * sizeof(T)));
      loadLanes(kernels_, dtype_, memory.inputs[x_], row * width, 1, x, width);
      const T *angles = table + row % tokens_ * half_ * 2;
      for (int64_t h = 0; h < heads_; ++h)
        for (int64_t i = 0; i < half_; ++i) {
          T &a = x[h * half_ * 2 + i * first], &b = x[h * half_ * 2 + i * first + second];
          T cosine = angles[i * 2], sine = angles[i * 2 + 1], rotated = a * cosine - b * sine;
          b = b * cosine + a * sine;
          a = rotated;
        }
      roundLanes(kernels_, dtype_, x, x, width);
      storeLanes(kernels_, dtype_, x, memory.outputs[0], row * width, 1, width);
    });
  }

  DType dtype_;
  int64_t batch_, tokens_, heads_, half_;
  double base_;
  bool isInterleaved_;
  double sign_;
  unsigned x_;
  std::optional<unsigned> positions_;
  DType positionType_;
  const lanes::Kernels &kernels_;
};

// sum, reduce_max, reduce_min over any dims. One task an output element, in double.
class AnyReduce : public Step {
public:
  AnyReduce(const Op &op, llvm::ArrayRef<int64_t> shape, unsigned input)
      : from_(op.operand(0u).dtype()), to_(op.result().dtype()), isSum_(op.is("sum")), isMax_(op.is("reduce_max")),
        input_(input) {
    auto reduced = reducedDims(op.site(), shape.size());
    Index strides = stridesOf(shape);
    for (unsigned i = 0; i < shape.size(); ++i) (reduced[i] ? over_ : kept_).push_back({shape[i], strides[i]});
  }

  void run(const StepMemory &memory, Workers &workers) const override {
    constexpr double inf = std::numeric_limits<double>::infinity();
    workers.forEach(count(kept_), [&](int64_t i) {
      int64_t base = at(kept_, i);
      double value = isSum_ ? 0 : isMax_ ? -inf : inf;
      for (int64_t k = 0, n = count(over_); k < n; ++k) {
        double x = loadElement(from_, memory.inputs[input_], base + at(over_, k));
        value = isSum_ ? value + x : isMax_ ? ir::max(value, x) : ir::min(value, x);
      }
      storeElement(to_, memory.outputs[0], i, value);
    });
  }

private:
  struct Axis {
    int64_t extent, stride;
  };
  static int64_t count(llvm::ArrayRef<Axis> axes) {
    int64_t n = 1;
    for (const Axis &axis : axes) n *= axis.extent;
    return n;
  }
  static int64_t at(llvm::ArrayRef<Axis> axes, int64_t i) {
    int64_t offset = 0;
    for (size_t d = axes.size(); d-- > 0; i /= axes[d].extent) offset += i % axes[d].extent * axes[d].stride;
    return offset;
  }
  DType from_, to_;
  bool isSum_, isMax_;
  unsigned input_;
  llvm::SmallVector<Axis, 4> kept_, over_;
};

// gather and scatter_add along any axis; the table is [outer, rows, inner]. Scatter adds in ascending order: a task
// owns one element of outer x inner.
class AnyGather : public Step {
public:
  AnyGather(const Op &op, llvm::ArrayRef<int64_t> table, int64_t indices, unsigned data, unsigned index)
      : isScatter_(op.is("scatter_add")), dtype_(op.result().dtype()), indicesType_(op.operand(1).dtype()),
        count_(indices), data_(data), index_(index) {
    unsigned axis = op.site().axis("axis", table.size());
    for (unsigned i = 0; i < table.size(); ++i) (i < axis ? outer_ : i == axis ? rows_ : inner_) *= table[i];
  }

  int64_t sharedBytes() const override { return isScatter_ ? outer_ * rows_ * inner_ * 8 : 0; }
  void run(const StepMemory &memory, Workers &workers) const override {
    const char *data = memory.inputs[data_];
    char *out = memory.outputs[0];
    auto *sums = reinterpret_cast<double *>(memory.shared);
    unsigned bytes = byteSize(dtype_);
    workers.forEach(outer_, [&](int64_t o) {
      double *own = sums + o * rows_ * inner_;
      if (isScatter_) std::fill_n(own, rows_ * inner_, 0.0);
      for (int64_t k = 0; k < count_; ++k) {
        auto row = static_cast<int64_t>(loadElement(indicesType_, memory.inputs[index_], k));
        if (row < 0) row += rows_;
        bool inside = row >= 0 && row < rows_;
        int64_t there = (o * count_ + k) * inner_;
        if (isScatter_ && inside)
          for (int64_t i = 0; i < inner_; ++i) own[row * inner_ + i] += loadElement(dtype_, data, there + i);
        else if (!isScatter_ && inside)
          std::memcpy(out + there * bytes, data + (o * rows_ + row) * inner_ * bytes, inner_ * bytes);
        else if (!isScatter_)
          std::memset(out + there * bytes, 0, inner_ * bytes);
      }
      if (isScatter_)
        for (int64_t i = 0; i < rows_ * inner_; ++i) storeElement(dtype_, out, o * rows_ * inner_ + i, own[i]);
    });
  }

private:
  bool isScatter_;
  DType dtype_, indicesType_;
  int64_t outer_ = 1, rows_ = 1, inner_ = 1, count_;
  unsigned data_, index_;
};

llvm::SmallVector<int64_t, 4> sizesOf(llvm::ArrayRef<Dim> shape, const SymbolValues &symbols) {
  llvm::SmallVector<int64_t, 4> sizes;
  for (const Dim &dim : shape) sizes.push_back(*dim.evaluate(symbols));
  return sizes;
}

bool hasStep(const Op &op) { return op.is("amax_update") || op.is("arg_reduce") || op.is("rope"); }

// The only op of a fusion but for the iota that counts rope's positions.
const Op *onlyOp(const Block &body) {
  const Op *only = nullptr;
  for (const Op &op : body.ops()) {
    if (op.def().isTerminator || op.is("iota")) continue;
    if (only) return nullptr;
    only = &op;
  }
  return only;
}

// Several of them, each from inputs of the fusion to results of it.
bool isAmaxUpdates(const Op &fusion) {
  auto yielded = fusion.body()->terminator()->operands();
  if (fusion.body()->ops().size() < 3) return false;
  return llvm::all_of(fusion.body()->ops(), [&](const Op &op) {
    return op.def().isTerminator ||
           (op.is("amax_update") && llvm::all_of(op.operands(), [](Value v) { return v.isArgument(); }) &&
            llvm::all_of(op.results(), [&](Value v) { return llvm::is_contained(yielded, v); }));
  });
}

} // namespace

const Op *nativeOp(const Op &op, bool anyDims) {
  auto fits = [&](const Op &o) {
    return hasStep(o) || (anyDims && (o.is("sum") || o.is("reduce_max") || o.is("reduce_min") || o.is("gather") ||
                                      o.is("scatter_add")));
  };
  if (!op.is("fusion")) return fits(op) ? &op : nullptr;
  if (isAmaxUpdates(op)) return &op;
  const Op *only = onlyOp(*op.body());
  if (!only || !fits(*only)) return nullptr;
  for (unsigned i = 0, argument = 0; i < only->operands().size(); ++i) {
    Value operand = only->operand(i);
    bool counts = only->is("rope") && i == 1 && operand.op() && operand.op()->is("iota");
    if (counts) continue;
    if (argument == op.body()->arguments().size() || operand != op.body()->argument(argument++)) return nullptr;
  }
  if (only->resultCount() != op.resultCount()) return nullptr;
  for (unsigned i = 0; i < only->resultCount(); ++i)
    if (op.body()->terminator()->operand(i) != only->result(i)) return nullptr;
  return only;
}

std::unique_ptr<Step> makeNativeStep(const Op &op, const SymbolValues &symbols, Isa isa) {
  if (op.is("fusion")) return std::make_unique<AmaxUpdates>(op, symbols);
  auto shape = sizesOf(op.operand(0u).shape(), symbols);
  if (op.is("amax_update")) return std::make_unique<AmaxUpdate>(op, shape[0]);
  if (op.is("arg_reduce")) return std::make_unique<ArgReduce>(op, shape);
  if (op.is("rope")) return std::make_unique<Rope>(op, shape, isa);
  if (op.def().lowering == Lowering::reduction) return std::make_unique<AnyReduce>(op, shape, *inputOf(op, 0));
  int64_t indices = count(sizesOf(op.operand(1).shape(), symbols));
  auto table = op.is("scatter_add") ? sizesOf(op.result().shape(), symbols) : shape;
  return std::make_unique<AnyGather>(op, table, indices, *inputOf(op, 0), *inputOf(op, 1));
}

} // namespace fusor::runtime
