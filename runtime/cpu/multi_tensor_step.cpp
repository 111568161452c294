#include "runtime/cpu/multi_tensor_step.h"
#include "ir/graph/bug.h"
#include "runtime/cpu/parallel.h"
#include <cmath>

namespace fusor::runtime {

using namespace ir;

namespace {
constexpr int64_t kPieceElements = 16384;

llvm::SmallVector<DType, 8> typesOf(llvm::ArrayRef<unsigned> numbers, llvm::ArrayRef<DType> types) {
  llvm::SmallVector<DType, 8> result;
  for (unsigned number : numbers) result.push_back(types[number]);
  return result;
}
} // namespace

MultiTensorStep::MultiTensorStep(const codegen::MultiTensorPlan &plan, const SymbolValues &symbols,
                                 llvm::ArrayRef<DType> inputs, llvm::ArrayRef<DType> outputs, Isa isa)
    : shared_(plan.sharedInputs), isa_(isa) {
  for (const auto &tensor : plan.tensors) {
    auto elements = tensor.elements.evaluate(symbols);
    if (!elements) FUSOR_BUG("{0} has no value when its tensors are planned", tensor.elements.str());
    for (int64_t first = 0; first < *elements; first += kPieceElements)
      pieces_.push_back({static_cast<unsigned>(tensors_.size()), first, std::min(kPieceElements, *elements - first)});
    tensors_.push_back({tensor.inputs, tensor.outputs, *elements, inputs[tensor.inputs[0]]});
  }
  if (plan.isGlobalNorm || plan.tensors.empty()) return;
  auto bodyInputs = typesOf(plan.tensors[0].inputs, inputs), bodyOutputs = typesOf(plan.tensors[0].outputs, outputs);
  bodyInputs.append(typesOf(shared_, inputs));
  // Every output may be in place of an input of its tensor.
  llvm::SmallVector<unsigned, 1> all;
  for (unsigned i = 0; i < plan.tensors[0].inputs.size(); ++i) all.push_back(i);
  std::vector<llvm::SmallVector<unsigned, 1>> overlaps(bodyOutputs.size(), all);
  LoopKernel::Options options;
  options.inputs = bodyInputs, options.outputs = bodyOutputs, options.overlaps = overlaps;
  options.isFlat = true, options.isa = isa;
  kernel_ = std::make_unique<LoopKernel>(plan.loop, symbols, options);
}

int64_t MultiTensorStep::sharedBytes() const {
  return kernel_ ? kernel_->sharedBytes() : static_cast<int64_t>(pieces_.size()) * 8;
}

void MultiTensorStep::run(const StepMemory &memory, Workers &workers) const {
  if (!kernel_) return globalNorm(memory, workers);
  auto memoryOf = [&](const Tensor &tensor, llvm::SmallVectorImpl<const char *> &inputs,
                      llvm::SmallVectorImpl<char *> &outputs) {
    for (unsigned input : tensor.inputs) inputs.push_back(memory.inputs[input]);
    for (unsigned input : shared_) inputs.push_back(memory.inputs[input]);
    for (unsigned output : tensor.outputs) outputs.push_back(memory.outputs[output]);
  };
  llvm::SmallVector<const char *, 8> inputs;
  llvm::SmallVector<char *, 8> outputs;
  memoryOf(tensors_[0], inputs, outputs);
  kernel_->prepare({inputs, outputs, memory.shared}, workers);
  workers.forEach(pieces_.size(), [&](int64_t task) {
    const Piece &piece = pieces_[task];
    llvm::SmallVector<const char *, 8> in;
    llvm::SmallVector<char *, 8> out;
    memoryOf(tensors_[piece.tensor], in, out);
    kernel_->flat({in, out, memory.shared}, piece.first, piece.count);
  });
}

void MultiTensorStep::globalNorm(const StepMemory &memory, Workers &workers) const {
  const lanes::Kernels &k = lanes::kernelsFor(isa_);
  auto *partial = reinterpret_cast<double *>(memory.shared);
  constexpr int64_t kBlock = 1024;
  workers.forEach(pieces_.size(), [&](int64_t task) {
    const Piece &piece = pieces_[task];
    const Tensor &tensor = tensors_[piece.tensor];
    alignas(64) char lanes[kBlock * 8];
    double sum = 0;
    for (int64_t done = 0; done < piece.count; done += kBlock) {
      int64_t n = std::min(kBlock, piece.count - done);
      loadLanes(k, tensor.dtype, memory.inputs[tensor.inputs[0]], piece.first + done, 1, lanes, n);
      if (laneOf(tensor.dtype) == Lane::f32)
        sum += k.rows.dot(reinterpret_cast<float *>(lanes), reinterpret_cast<float *>(lanes), n);
      else
        for (int64_t i = 0; i < n; ++i)
          sum += reinterpret_cast<double *>(lanes)[i] * reinterpret_cast<double *>(lanes)[i];
    }
    partial[task] = sum;
  });
  double sum = 0;
  for (size_t i = 0; i < pieces_.size(); ++i) sum += partial[i];
  *reinterpret_cast<float *>(memory.outputs[0]) = static_cast<float>(std::sqrt(sum));
}

} // namespace fusor::runtime
