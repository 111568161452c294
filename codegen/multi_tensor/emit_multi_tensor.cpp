#include "codegen/multi_tensor/emit_multi_tensor.h"
#include "codegen/emit/literal.h"
#include "codegen/loop/loop_text.h"
#include "codegen/plan/anchors.h"
#include "llvm/ADT/SmallPtrSet.h"
#include <cmath>

namespace fusor::codegen {

using namespace ir;

namespace {

constexpr int64_t kChunk = 4096;
constexpr int64_t kLongestHistory = 65536; // one chunk
constexpr int kThreads = 256, kWidth = 4;

void openTable(KernelBuilder &k) {
  k.use("multi_tensor.cuh");
  std::string pointers = k.special(KernelArg::Kind::tablePointers, "const u64 *__restrict__ ", "pointer_table");
  std::string sizes = k.special(KernelArg::Kind::tableSizes, "const i64 *__restrict__ ", "size_table");
  std::string chunks = k.special(KernelArg::Kind::tableChunks, "const i64 *__restrict__ ", "chunk_table");
  std::string count = k.special(KernelArg::Kind::tableCount, "i64 ", "tensor_count");
  k.code().line("const TensorTable table = {{{0}, {1}, {2}, {3}};", pointers, sizes, chunks, count);
}

// A block's chunk of a tensor; pointers follow.
void openChunk(KernelBuilder &k, int64_t elements = kChunk) {
  k.use("tail.cuh");
  openTable(k);
  k.code().line("const TensorChunk chunk = findChunk(table, blockIdx.x, {0});", elements);
}

CodeWriter::Block overChunk(KernelBuilder &k) {
  auto loop = k.code().block("for (i64 i = chunk.begin + threadIdx.x * {0}; i < chunk.end; i += {1})", kWidth,
                             kThreads * kWidth);
  k.code().line("const i64 left = chunk.end - i;");
  return loop;
}

llvm::Expected<int64_t> chunksOf(const MultiTensorPlan &plan, const TensorTable &table) {
  int64_t chunks = 0;
  for (const TensorTable::Tensor &tensor : table.tensors) {
    if (!tensor.elements.isConstant())
      return opError("tensors of a multi-tensor kernel need fixed sizes, found {0}", tensor.elements.str());
    chunks += (tensor.elements.value() + table.chunkElements - 1) / table.chunkElements;
  }
  return chunks;
}

// The body once, for whichever tensor the block works on. Amaxes come out as one partial result a chunk.
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
    openChunk(k);
    LoopText text(k, plan_.loop, 1);
    text.setWriter(w);
    text.setPlace({"0", "i", "i"});
    pointers(k);
    computeShared(k, text);
    std::vector<std::string> running;
    for (const RowsSum &sum : plan_.loop.sums) {
      k.use("reduce.cuh");
      running.push_back(k.names().make((sum.result.name() + "_chunk").str()));
      w.line("float {0} = {1}::identity<float>();", running.back(), reducer(*sum.op));
    }
    {
      auto loop = overChunk(k);
      overElements(k, text, running);
    }
    for (unsigned i = 0; i < running.size(); ++i) {
      w.line("{0} = blockReduce<{1}>({0});", running[i], reducer(*plan_.loop.sums[i].op));
      w.line("if (threadIdx.x == 0) {0}[blockIdx.x] = {1};", partials(k, i, false), running[i]);
    }
    k.finish({Count(chunks_), kThreads,
              llvm::formatv("{0} tensors in chunks of {1} elements", plan_.tensors.size(), kChunk).str()});
  }

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
  llvm::SmallPtrSet<ValueDef *, 16> shared_;
};

void emitNorm(const FusionBody &body, KernelSet &set, const MultiTensorPlan &plan, int64_t chunks) {
  unsigned partials = set.workspaces.size();
  set.workspaces.push_back(Count(chunks * 4));
  DType type = body.block().argument(0).dtype();
  {
    KernelBuilder k(body, set, "squares");
    k.use("reduce.cuh");
    CodeWriter &w = k.code();
    openChunk(k);
    std::string x = k.names().make("x"), x4 = k.names().make("x4"), sum = k.names().make("sum");
    w.line("const {0} *{1} = tensorPointer<const {0}>(table, 0, chunk.tensor);", storageType(type), x);
    w.line("float {0} = 0.0f;", sum);
    {
      auto loop = overChunk(k);
      w.line("{0} {1}[{2}];", variableType(type), x4, kWidth);
      w.line("loadUpTo({0} + i, left, {1});", x, x4);
      w.line("for (int e = 0; e < {0}; ++e) {1} += (float)({2}[e] * {2}[e]);", kWidth, sum, x4);
    }
    w.line("{0} = blockReduce<Sum>({0});", sum);
    w.line("if (threadIdx.x == 0) {0}[blockIdx.x] = {1};", k.workspace(partials, "float", "squares", false), sum);
    k.finish({Count(chunks), kThreads, "a block a chunk: its sum of squares"});
  }
  KernelBuilder k(body, set, "root");
  k.use("partials.cuh");
  k.use("math.cuh");
  std::string total = k.names().make("total");
  k.code().line("const float {0} = scalarTotal<Sum>({1}, (i64){2});", total,
                k.workspace(partials, "float", "squares", true), chunks);
  k.code().line("if (threadIdx.x == 0) store({0}, math::sqrt({1}));", k.output(0), total);
  k.finish({1, 1024, "the root of their sum"});
}

float topOf(const Op &update) {
  return static_cast<float>(maxFinite(update.attr<DType>("dtype")) *
                            std::exp2(-static_cast<double>(update.attr<int64_t>("margin"))));
}

// A block a tensor. Those in E4M3 stand first.
void emitAmaxUpdate(const FusionBody &body, KernelSet &set, int64_t tensors, int64_t inE4m3) {
  const Op &first = body.block().ops().front();
  KernelBuilder k(body, set);
  k.use("amax_update.cuh");
  openChunk(k, kLongestHistory);
  float tops[2] = {0, 0};
  for (const Op &op : body.block().ops())
    if (op.is("amax_update")) tops[op.attr<DType>("dtype") == DType::f8e5m2] = topOf(op);
  std::string top =
      inE4m3 == 0 ? floatLiteral(tops[1])
      : inE4m3 == tensors
          ? floatLiteral(tops[0])
          : llvm::formatv("chunk.tensor < {0} ? {1} : {2}", inE4m3, floatLiteral(tops[0]), floatLiteral(tops[1])).str();
  k.code().line("const float *history = tensorPointer<const float>(table, 0, chunk.tensor);");
  k.code().line("const float *scale = tensorPointer<const float>(table, 1, chunk.tensor);");
  k.code().line("const float *amax = tensorPointer<const float>(table, 2, chunk.tensor);");
  k.code().line("float *newHistory = tensorPointer<float>(table, 3, chunk.tensor);");
  k.code().line("float *newScale = tensorPointer<float>(table, 4, chunk.tensor);");
  k.code().line("float *newInverse = tensorPointer<float>(table, 5, chunk.tensor);");
  k.code().line("const float top = {0}; // the largest FP8 value, less the margin", top);
  k.code().line("amaxUpdate<{0}>(history, scale, amax, newHistory, newScale, newInverse, chunk.end, top);",
                first.attr<std::string>("algo") == "max" ? "false" : "true");
  k.finish({Count(tensors), 64, llvm::formatv("a block a history, {0} of them", tensors).str()});
}

} // namespace

llvm::Error emitMultiTensor(const FusionBody &body, KernelSet &set) {
  auto plan = planMultiTensor(*body.fusion);
  if (!plan) return plan.takeError();
  TensorTable table;
  table.chunkElements = plan->isAmaxUpdate ? kLongestHistory : kChunk;
  int64_t inE4m3 = 0;
  if (plan->isAmaxUpdate) { // tensors are in the order of the body's ops
    std::vector<MultiTensorPlan::Tensor> sorted[2];
    unsigned number = 0;
    for (const Op &op : body.block().ops())
      if (op.is("amax_update")) sorted[op.attr<DType>("dtype") == DType::f8e5m2].push_back(plan->tensors[number++]);
    inE4m3 = static_cast<int64_t>(sorted[0].size());
    plan->tensors = std::move(sorted[0]);
    plan->tensors.insert(plan->tensors.end(), sorted[1].begin(), sorted[1].end());
  }
  for (const MultiTensorPlan::Tensor &tensor : plan->tensors) {
    TensorTable::Tensor entry;
    entry.elements = tensor.elements;
    for (unsigned input : tensor.inputs) entry.pointers.push_back({false, input});
    for (unsigned output : tensor.outputs) entry.pointers.push_back({true, output});
    table.tensors.push_back(std::move(entry));
  }
  auto chunks = chunksOf(*plan, table);
  if (!chunks) return chunks.takeError();
  if (plan->isAmaxUpdate) {
    for (const MultiTensorPlan::Tensor &tensor : plan->tensors) {
      if (tensor.elements.value() < 1 || tensor.elements.value() > kLongestHistory)
        return opError("amax histories of 1 to {0} steps have a kernel, found {1}", kLongestHistory,
                       tensor.elements.str());
      for (unsigned i : {0u, 1u}) set.inPlace.push_back({tensor.inputs[i], tensor.outputs[i]});
    }
    emitAmaxUpdate(body, set, static_cast<int64_t>(plan->tensors.size()), inE4m3);
    set.table = std::move(table);
    return llvm::Error::success();
  }
  if (plan->isGlobalNorm) {
    for (Value argument : body.block().arguments())
      if (argument.dtype() != body.block().argument(0).dtype())
        return opError("the norm kernel takes tensors of one dtype, found {0} and {1}",
                       body.block().argument(0).type().str(), argument.type().str());
    emitNorm(body, set, *plan, *chunks);
  } else {
    // Every output has the bytes of an input of its own tensor: param, m, v. Each element is read where it is written.
    for (const MultiTensorPlan::Tensor &tensor : plan->tensors)
      for (auto [output, input] : {std::pair{0u, 0u}, {1u, 2u}, {2u, 3u}})
        set.inPlace.push_back({tensor.inputs[input], tensor.outputs[output]});
    if (auto error = UpdateWriter(body, set, *plan, *chunks).write()) return error;
  }
  set.table = std::move(table);
  return llvm::Error::success();
}

} // namespace fusor::codegen
