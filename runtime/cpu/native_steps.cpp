#include "runtime/cpu/native_steps.h"
#include "ir/graph/bug.h"
#include "ir/types/dtype.h"
#include "runtime/cpu/parallel.h"
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
      : length_(length), isMax_(op.attr<std::string>("algo") == "max"),
        top_(static_cast<float>(maxFinite(op.attr<DType>("dtype")) *
                                std::exp2(-static_cast<double>(op.attr<int64_t>("margin"))))) {}

  void run(const StepMemory &memory, Workers &) const override {
    const auto *history = reinterpret_cast<const float *>(memory.inputs[0]);
    float scale = *reinterpret_cast<const float *>(memory.inputs[1]),
          amax = *reinterpret_cast<const float *>(memory.inputs[2]);
    auto *next = reinterpret_cast<float *>(memory.outputs[0]);
    if (next != history) std::memmove(next, history, length_ * 4);
    auto *nextScale = reinterpret_cast<float *>(memory.outputs[1]);
    *nextScale = scale;
    if (amax == 0 || length_ == 0) return;
    float used = amax;
    for (int64_t i = 1; i < length_ && isMax_; ++i) used = std::max(used, next[i]);
    std::memmove(next, next + 1, (length_ - 1) * 4);
    next[length_ - 1] = amax;
    next[0] = 0;
    if (used > 0 && !std::isinf(used)) *nextScale = std::min(top_ / used, std::numeric_limits<float>::max());
  }

private:
  int64_t length_;
  bool isMax_;
  float top_;
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

} // namespace

const Op *nativeOp(const Op &op) {
  if (op.is("amax_update") || op.is("arg_reduce")) return &op;
  if (!op.is("fusion") || op.body()->ops().size() != 2) return nullptr;
  const Op &only = op.body()->ops().front();
  if (only.is("fusion") || !nativeOp(only) || only.operands().size() != op.operands().size()) return nullptr;
  for (unsigned i = 0; i < only.operands().size(); ++i)
    if (only.operand(i) != op.body()->argument(i)) return nullptr;
  if (only.resultCount() != op.resultCount()) return nullptr;
  for (unsigned i = 0; i < only.resultCount(); ++i)
    if (op.body()->terminator()->operand(i) != only.result(i)) return nullptr;
  return &only;
}

std::unique_ptr<Step> makeNativeStep(const Op &op, const SymbolValues &symbols) {
  llvm::SmallVector<int64_t, 4> shape;
  for (const Dim &dim : op.operand(0u).shape()) shape.push_back(*dim.evaluate(symbols));
  if (op.is("amax_update")) return std::make_unique<AmaxUpdate>(op, shape[0]);
  if (op.is("arg_reduce")) return std::make_unique<ArgReduce>(op, shape);
  FUSOR_BUG("'{0}' has no step of its own", op.name());
}

} // namespace fusor::runtime
