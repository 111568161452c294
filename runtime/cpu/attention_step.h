// Attention and its gradient in f32, one (batch, head, block of queries) a task; keys that a block cannot see are
// skipped.
//
// A block's scores over all of its keys are kept (64 queries x Tk), so the softmax is the plain one. The gradient
// recomputes the probabilities from lse; a task owns one key-value head, so its sums need no other task.
#pragma once
#include "codegen/plan/anchors.h"
#include "runtime/cpu/isa.h"
#include "runtime/cpu/step.h"

namespace fusor::runtime {

class AttentionStep : public Step {
public:
  /// `inputs` are the dtypes of the cluster's inputs. The plan's dtype is not f64.
  AttentionStep(const codegen::AttentionPlan &plan, const ir::SymbolValues &symbols, llvm::ArrayRef<ir::DType> inputs,
                Isa isa);
  void run(const StepMemory &memory, Workers &workers) const override;

private:
  struct View { // one of q, k, v ...: element (b, t, head, e) is at offset + (b * tokens + t) * rowStride + head * d +
                // e
    unsigned index = 0;
    int64_t offset = 0, rowStride = 0;
  };
  struct Bias { // strides of batch, head, query and key
    unsigned index = 0;
    int64_t offset = 0, strides[4] = {};
  };
  struct Range {
    int64_t begin = 0, end = 0;
    int64_t size() const { return end - begin; }
  };
  class Task;
  friend class Task;
  int64_t length(const StepMemory &memory) const;
  Range keysOf(int64_t firstQuery, int64_t lastQuery, int64_t length) const;
  void forward(const StepMemory &memory, int64_t batch, int64_t head, int64_t firstQuery) const;
  void backward(const StepMemory &memory, int64_t batch, int64_t kvHead) const;

  bool isBackward_, causal_;
  ir::DType dtype_, lengthType_ = ir::DType::i32;
  int64_t batch_, tq_, tk_, heads_, kvHeads_, d_, window_;
  float scale_;
  std::optional<float> hidden_; // the score of keys that causal hides
  View q_, k_, v_, y_, dy_, dq_, dk_, dv_;
  std::optional<unsigned> lseOutput_, keyMask_, kvLength_;
  std::optional<Bias> bias_;
  unsigned lseInput_;
  Isa isa_;
};

} // namespace fusor::runtime
