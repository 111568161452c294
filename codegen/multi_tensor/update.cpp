// adamw over many tensors: the body once, for whichever tensor the block works on.
//
//   chunks   a block has 4096 elements, or a 64 x 64 tile where FP8 casts go out transposed too; amaxes come out as one
//            partial result a block
//   finish   a block a tensor: its amaxes
#include "codegen/loop/loop_text.h"
#include "codegen/multi_tensor/chunk.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace fusor::codegen {

using namespace ir;

namespace {

class UpdateWriter {
public:
  UpdateWriter(const FusionBody &body, KernelSet &set, const MultiTensorPlan &plan, int64_t chunks)
      : body_(body), set_(set), plan_(plan), chunks_(chunks), perTensor_(plan.tensors.front().inputs.size()),
        firstPartials_(set.workspaces.size()) {}

  llvm::Error write() {
    for (const RowsSum &sum : plan_.loop.sums)
      if (sum.span != Span::scalar || accumulatorType(sum.of.dtype()) != "float")
        return opError("{0} over {1} is no part of a multi-tensor kernel", sum.op->name(), sum.of.type().str());
    for (const LoopStep &step : plan_.loop.finish)
      if (step.kind == LoopStep::Kind::load)
        return opError("what follows from the amax of a parameter is no part of a multi-tensor kernel");
    for (unsigned i = 0; i < plan_.loop.sums.size(); ++i) set_.workspaces.push_back(Count(chunks_ * 4));
    writeUpdate();
    if (!plan_.loop.sums.empty()) writeFinish();
    return llvm::Error::success();
  }

private:
  void writeUpdate() {
    KernelBuilder k(body_, set_, plan_.loop.sums.empty() ? "" : "chunks");
    CodeWriter &w = k.code();
    plan_.turned.empty() ? openChunk(k) : openTile(k);
    LoopText text(k, plan_.loop, 1);
    text.setWriter(w);
    text.setPlace({"0", "i", "i"});
    if (plan_.tensors.size() > 1) text.setShapeInMargin("[n]"); // each tensor has its own
    pointers(k);
    computeShared(k, text);
    std::vector<std::string> running;
    for (const RowsSum &sum : plan_.loop.sums) {
      k.use("reduce.cuh");
      running.push_back(k.names().make((sum.result.name() + "_chunk").str()));
      w.line("float {0} = {1}::identity<float>();", running.back(), reducer(*sum.op));
    }
    if (plan_.turned.empty()) {
      auto loop = overChunk(k);
      overElements(k, text, running);
    } else {
      overTile(k, text, running);
    }
    for (unsigned i = 0; i < running.size(); ++i) {
      w.line("{0} = blockReduce<{1}>({0});", running[i], reducer(*plan_.loop.sums[i].op));
      w.line("if (threadIdx.x == 0) {0}[blockIdx.x] = {1};", partials(k, i, false), running[i]);
    }
    std::string share = plan_.turned.empty() ? llvm::formatv("chunks of {0} elements", kChunk).str()
                                             : llvm::formatv("tiles of {0} x {0}", kSide).str();
    k.finish({Count(chunks_), kThreads, llvm::formatv("{0} tensors in {1}", plan_.tensors.size(), share).str()});
  }

  // The same by tiles of a matrix, whose casts go out transposed through shared memory.
  void overTile(KernelBuilder &k, LoopText &text, llvm::ArrayRef<std::string> running) {
    CodeWriter &w = k.code();
    for (unsigned i = 0; i < plan_.turned.size(); ++i) {
      turned_.push_back(k.names().make("turned"));
      w.line("__shared__ TurnedTile<{0}> {1};", kSide, turned_.back());
    }
    {
      auto rows = w.block("for (int r = threadIdx.x / {0}; r < {1}; r += {2})", kSide / kWidth, kSide,
                          kThreads / (kSide / kWidth));
      w.line("const int c = threadIdx.x % {0} * {1};", kSide / kWidth, kWidth);
      auto inside = w.block("if (chunk.row0 + r < chunk.rows && chunk.column0 + c < chunk.columns)");
      w.line("const i64 i = (chunk.row0 + r) * chunk.columns + chunk.column0 + c, left = {0};", kWidth);
      overElements(k, text, running);
    }
    w.raw("__syncthreads();");
    for (unsigned i = 0; i < turned_.size(); ++i) {
      llvm::StringRef type = storageType(turnedValue(i).dtype());
      w.line("{0}.store(tensorPointer<{1}>(table, {2}, chunk.tensor), chunk);", turned_[i], type,
             perTensor_ + plan_.tensors.front().outputs.size() + i);
    }
  }
  Value turnedValue(unsigned i) const { return plan_.body.function->returns()[plan_.turned[i]].value; }

  const Block &flat() const { return plan_.body.function->block(); }
  std::string partials(KernelBuilder &k, unsigned sum, bool isConst) const {
    return k.workspace(firstPartials_ + sum, "float", (plan_.loop.sums[sum].result.name() + "_partials").str(),
                       isConst);
  }

  void pointers(KernelBuilder &k) {
    for (unsigned i = 0; i < perTensor_; ++i) {
      Value v = flat().argument(i);
      inputs_.push_back(k.names().make(v.name()));
      k.code().line("const {0} *{1} = tensorPointer<const {0}>(table, {2}, chunk.tensor);", storageType(v.dtype()),
                    inputs_.back(), i);
    }
    for (const LoopStore &store : plan_.loop.stores) {
      outputs_.push_back(k.names().make(store.value.name()));
      k.code().line("{0} *{1} = tensorPointer<{0}>(table, {2}, chunk.tensor);", storageType(store.value.dtype()),
                    outputs_.back(), perTensor_ + store.output);
    }
  }

  bool isElement(const LoopStep &load) const {
    return load.access.input < perTensor_ && flat().argument(load.access.input).rank() > 0;
  }

  // What has one value for the whole chunk is loaded and computed before the loop.
  void computeShared(KernelBuilder &k, LoopText &text) {
    for (const LoopStep &step : plan_.loop.main) {
      if (step.kind == LoopStep::Kind::load) {
        if (isElement(step)) continue;
        unsigned input = step.access.input;
        std::string variable = k.names().make(step.result.name().str());
        k.code().line("const {0} {1} = load({2});", variableType(step.result.dtype()), variable,
                      input < perTensor_ ? inputs_[input] : k.input(plan_.sharedInputs[input - perTensor_]));
        text.bind(step.result, variable);
      } else {
        bool isShared = true;
        for (Value operand : step.op->operands()) isShared &= shared_.contains(operand.def());
        if (!isShared) continue;
        text.compute(step);
      }
      shared_.insert(step.result.def());
    }
  }

  void overElements(KernelBuilder &k, LoopText &text, llvm::ArrayRef<std::string> running) {
    CodeWriter &w = k.code();
    auto arrayOf = [&](Value v) {
      std::string array = k.names().make(identifierFrom(v.name()) + std::to_string(kWidth));
      w.line("{0} {1}[{2}];", variableType(v.dtype()), array, kWidth);
      return array;
    };
    w.raw("// load");
    for (const LoopStep &step : plan_.loop.main) {
      if (step.kind != LoopStep::Kind::load || !isElement(step)) continue;
      std::string array = arrayOf(step.result);
      w.line("loadUpTo({0} + i, left, {1});", inputs_[step.access.input], array);
      text.bind(step.result, array + "[e]");
    }
    std::vector<std::string> arrays;
    w.raw("// compute");
    for (const LoopStore &store : plan_.loop.stores) {
      arrays.push_back(arrayOf(store.value));
      if (text.target(store.value).empty()) text.assignTo(store.value, arrays.back() + "[e]");
    }
    {
      w.raw("#pragma unroll");
      auto lanes = w.block("for (int e = 0; e < {0}; ++e)", kWidth);
      for (const LoopStep &step : plan_.loop.main)
        if (step.kind != LoopStep::Kind::load && !shared_.contains(step.result.def())) text.compute(step);
      for (unsigned i = 0; i < arrays.size(); ++i)
        if (std::string value = text.spell(plan_.loop.stores[i].value); value != arrays[i] + "[e]")
          w.line("{0}[e] = {1};", arrays[i], value);
      for (unsigned i = 0; i < running.size(); ++i)
        w.line("if (e < left) {0} = {1}::combine({0}, {2});", running[i], reducer(*plan_.loop.sums[i].op),
               text.spell(plan_.loop.sums[i].of));
    }
    w.raw("// store");
    for (unsigned i = 0; i < arrays.size(); ++i) w.line("storeUpTo({0} + i, left, {1});", outputs_[i], arrays[i]);
    for (unsigned i = 0; i < turned_.size(); ++i)
      for (unsigned j = 0; j < arrays.size(); ++j)
        if (plan_.loop.stores[j].output == plan_.turned[i])
          w.line("{0}.put<{1}>(r, c, {2});", turned_[i], storageType(turnedValue(i).dtype()), arrays[j]);
  }

  // A block a tensor: the amaxes of its chunks become one.
  void writeFinish() {
    KernelBuilder k(body_, set_, "finish");
    CodeWriter &w = k.code();
    k.use("reduce.cuh");
    openTable(k);
    w.raw("const i64 tensor = blockIdx.x, first = table.chunkPrefix[tensor], end = table.chunkPrefix[tensor + 1];");
    LoopText text(k, plan_.loop, 1);
    text.setWriter(w);
    for (const LoopStep &step : plan_.loop.finish) {
      if (step.kind != LoopStep::Kind::sum) {
        text.compute(step);
        continue;
      }
      std::string total = k.names().make(step.result.name()), op = reducer(*plan_.loop.sums[step.sumIndex].op).str();
      w.line("float {0} = {1}::identity<float>();", total, op);
      w.line("for (i64 chunk = first + threadIdx.x; chunk < end; chunk += blockDim.x)");
      w.line("  {0} = {1}::combine({0}, {2}[chunk]);", total, op, partials(k, step.sumIndex, true));
      w.line("{0} = blockReduce<{1}>({0});", total, op);
      text.bind(step.result, total);
    }
    for (const LoopStore &store : plan_.loop.finishStores)
      w.line("if (threadIdx.x == 0) store(tensorPointer<{0}>(table, {1}, tensor), {2});",
             storageType(store.value.dtype()), perTensor_ + store.output, text.spell(store.value));
    k.finish({Count(static_cast<int64_t>(plan_.tensors.size())), 128, "a block a tensor"});
  }

  const FusionBody &body_;
  KernelSet &set_;
  const MultiTensorPlan &plan_;
  const int64_t chunks_;
  const unsigned perTensor_, firstPartials_;
  std::vector<std::string> inputs_, outputs_; // pointers, the latter of plan_.loop.stores
  std::vector<std::string> turned_;           // tiles of plan_.turned
  llvm::SmallPtrSet<ValueDef *, 16> shared_;
};

} // namespace

llvm::Error emitUpdate(const FusionBody &body, KernelSet &set, const MultiTensorPlan &plan, int64_t chunks) {
  return UpdateWriter(body, set, plan, chunks).write();
}

} // namespace fusor::codegen
