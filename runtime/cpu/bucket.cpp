#include "runtime/cpu/bucket.h"
#include "ir/ops/flops.h"
#include "ir/ops/traffic.h"
#include "runtime/execute/constants.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MathExtras.h"

namespace fusor::runtime {

using namespace ir;

llvm::Expected<std::unique_ptr<Bucket>> makeBucket(const Function &function,
                                                   llvm::ArrayRef<std::unique_ptr<ClusterCode>> codes,
                                                   const SymbolValues &symbols, Isa isa) {
  auto bucket = std::make_unique<Bucket>();
  bucket->symbols = symbols;
  llvm::DenseMap<const Op *, const ClusterCode *> codeOf;
  for (const auto &code : codes) codeOf[code->op] = code.get();

  auto overwrite = [&](const Op &op, unsigned result, unsigned operand) {
    auto it = codeOf.find(&op);
    return it != codeOf.end() && mayOverwrite(*it->second, result, operand);
  };
  passes::MemoryOptions options;
  options.mayOverwrite = overwrite;
  auto memory = passes::planMemory(function, symbols, options);
  if (!memory) return memory.takeError();
  bucket->memory = std::move(*memory);
  bucket->constants = AlignedMemory(bucket->memory.constantBytes);
  if (auto error = fillConstants(function, bucket->memory, symbols, bucket->constants.data())) return error;

  for (const auto &code : codes) {
    BucketStep step;
    step.code = code.get();
    auto add = [&](Value value, llvm::SmallVectorImpl<unsigned> &into) {
      into.push_back(bucket->memory.bufferOf[value.def()]);
    };
    for (Value input : code->inputs) add(input, step.inputs);
    for (Value result : code->op->results()) add(result, step.outputs);
    llvm::SmallVector<llvm::SmallVector<unsigned, 1>, 4> overlaps(step.outputs.size());
    for (unsigned o = 0; o < step.outputs.size(); ++o)
      for (unsigned i = 0; i < step.inputs.size(); ++i)
        if (bucket->memory.buffers[step.inputs[i]].place == bucket->memory.buffers[step.outputs[o]].place)
          overlaps[o].push_back(i);
    step.bytes = movedBytes(*code->op, symbols), step.flops = contractionFlops(*code->op, symbols);
    step.step = instantiate(*code, symbols, overlaps, isa);
    bucket->sharedBytes = std::max(bucket->sharedBytes, step.step->sharedBytes());
    bucket->steps.push_back(std::move(step));
  }
  bucket->sharedBytes = llvm::alignTo(bucket->sharedBytes, 64);
  bucket->memory.workspaceBytes = bucket->sharedBytes;
  return bucket;
}

} // namespace fusor::runtime
