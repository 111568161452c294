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

// A block's chunk of a tensor; pointers follow.
void openChunk(KernelBuilder &k, int64_t elements = kChunk) {
  k.use("multi_tensor.cuh");
  k.use("tail.cuh");
  std::string pointers = k.special(KernelArg::Kind::tablePointers, "const u64 *__restrict__ ", "pointer_table");
  std::string sizes = k.special(KernelArg::Kind::tableSizes, "const i64 *__restrict__ ", "size_table");
  std::string chunks = k.special(KernelArg::Kind::tableChunks, "const i64 *__restrict__ ", "chunk_table");
  std::string count = k.special(KernelArg::Kind::tableCount, "i64 ", "tensor_count");
  k.code().line("const TensorTable table = {{{0}, {1}, {2}, {3}};", pointers, sizes, chunks, count);
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

// The body once, for whichever tensor the block works on.
void emitUpdate(const FusionBody &body, KernelSet &set, const MultiTensorPlan &plan, int64_t chunks) {
  KernelBuilder k(body, set);
  CodeWriter &w = k.code();
  openChunk(k);
  const Block &flat = plan.body.function->block();
  unsigned perTensor = plan.tensors.front().inputs.size();
  auto yielded = plan.body.function->returns();

  std::vector<std::string> inputs, outputs;
  for (unsigned i = 0; i < perTensor; ++i) {
    Value v = flat.argument(i);
    inputs.push_back(k.names().make(v.name()));
    w.line("const {0} *{1} = tensorPointer<const {0}>(table, {2}, chunk.tensor);", storageType(v.dtype()),
           inputs.back(), i);
  }
  for (unsigned i = 0; i < yielded.size(); ++i) {
    Value v = yielded[i].value;
    outputs.push_back(k.names().make(v.name()));
    w.line("{0} *{1} = tensorPointer<{0}>(table, {2}, chunk.tensor);", storageType(v.dtype()), outputs.back(),
           perTensor + i);
  }

  LoopText text(k, plan.loop, 1);
  text.setWriter(w);
  text.setPlace({"0", "i", "i"});
  // What depends on no tensor is computed once, before the loop.
  llvm::SmallPtrSet<ValueDef *, 16> shared;
  for (const LoopStep &step : plan.loop.main) {
    if (step.kind == LoopStep::Kind::load) {
      if (step.access.input < perTensor) continue;
      std::string variable = k.names().make(step.result.name().str());
      w.line("const {0} {1} = load({2});", variableType(step.result.dtype()), variable,
             k.input(plan.sharedInputs[step.access.input - perTensor]));
      text.bind(step.result, variable);
    } else {
      bool isShared = true;
      for (Value operand : step.op->operands()) isShared &= shared.contains(operand.def());
      if (!isShared) continue;
      text.compute(step);
    }
    shared.insert(step.result.def());
  }

  auto loop = overChunk(k);
  w.raw("// load");
  for (const LoopStep &step : plan.loop.main) {
    if (step.kind != LoopStep::Kind::load || step.access.input >= perTensor) continue;
    std::string array = k.names().make(identifierFrom(step.result.name()) + std::to_string(kWidth));
    w.line("{0} {1}[{2}];", variableType(step.result.dtype()), array, kWidth);
    w.line("loadUpTo({0} + i, left, {1});", inputs[step.access.input], array);
    text.bind(step.result, array + "[e]");
  }
  std::vector<std::string> arrays;
  w.raw("// compute");
  for (const ReturnEntry &entry : yielded) {
    std::string array = k.names().make(identifierFrom(entry.value.name()) + std::to_string(kWidth));
    w.line("{0} {1}[{2}];", variableType(entry.value.dtype()), array, kWidth);
    if (text.target(entry.value).empty()) text.assignTo(entry.value, array + "[e]");
    arrays.push_back(array);
  }
  {
    w.raw("#pragma unroll");
    auto lanes = w.block("for (int e = 0; e < {0}; ++e)", kWidth);
    for (const LoopStep &step : plan.loop.main)
      if (step.kind != LoopStep::Kind::load && !shared.contains(step.result.def())) text.compute(step);
    for (unsigned i = 0; i < yielded.size(); ++i)
      if (text.spell(yielded[i].value) != arrays[i] + "[e]")
        w.line("{0}[e] = {1};", arrays[i], text.spell(yielded[i].value));
  }
  w.raw("// store");
  for (unsigned i = 0; i < yielded.size(); ++i) w.line("storeUpTo({0} + i, left, {1});", outputs[i], arrays[i]);
  loop.end();
  k.finish({Count(chunks), kThreads,
            llvm::formatv("{0} tensors in chunks of {1} elements", plan.tensors.size(), kChunk).str()});
}

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
  llvm::StringRef algo = first.attr<std::string>("algo");
  k.code().line("amaxUpdate<{0}, {1}>(history, scale, amax, newHistory, newScale, newInverse, chunk.end, top);",
                algo.startswith("max") ? "false" : "true", algo.endswith("_finite") ? "true" : "false");
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
    emitUpdate(body, set, *plan, *chunks);
  }
  set.table = std::move(table);
  return llvm::Error::success();
}

} // namespace fusor::codegen
