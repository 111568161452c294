#include "runtime/cpu/split_step.h"
#include "ir/graph/bug.h"
#include <cstring>

namespace fusor::runtime {

using namespace ir;
using passes::PlaceKind;

SplitStep::SplitStep(const Function &flat, llvm::ArrayRef<std::unique_ptr<ClusterCode>> parts,
                     const SymbolValues &symbols, Isa isa) {
  auto bucket = makeBucket(flat, parts, symbols, isa);
  if (!bucket) FUSOR_BUG("a cluster's body has no plan: {0}", llvm::toString(bucket.takeError()));
  bucket_ = std::move(*bucket);
}

int64_t SplitStep::sharedBytes() const { return bucket_->memory.arenaBytes + bucket_->sharedBytes; }

void SplitStep::run(const StepMemory &memory, Workers &workers) const {
  std::vector<char *> at;
  for (const auto &buffer : bucket_->memory.buffers) {
    switch (buffer.place.kind) {
    case PlaceKind::arena: at.push_back(memory.shared + buffer.place.offset); break;
    case PlaceKind::input: at.push_back(const_cast<char *>(memory.inputs[buffer.place.index])); break;
    case PlaceKind::output: at.push_back(memory.outputs[buffer.place.index]); break;
    case PlaceKind::constant: at.push_back(bucket_->constants.data() + buffer.place.offset); break;
    case PlaceKind::persistent: FUSOR_BUG("a cluster's body reads memory of the module");
    }
  }
  llvm::SmallVector<const char *, 8> inputs;
  llvm::SmallVector<char *, 8> outputs;
  for (const BucketStep &step : bucket_->steps) {
    inputs.clear(), outputs.clear();
    for (unsigned buffer : step.inputs) inputs.push_back(at[buffer]);
    for (unsigned buffer : step.outputs) outputs.push_back(at[buffer]);
    step.step->run({inputs, outputs, memory.shared + bucket_->memory.arenaBytes}, workers);
  }
  for (const auto &[output, value] : bucket_->memory.resultCopies)
    std::memcpy(memory.outputs[output], at[bucket_->memory.bufferOf.find(value.def())->second],
                *passes::storageBytes(value.type(), bucket_->symbols));
}

} // namespace fusor::runtime
