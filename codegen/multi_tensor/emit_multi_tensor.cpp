#include "codegen/multi_tensor/emit_multi_tensor.h"
#include "codegen/emit/literal.h"
#include "codegen/emit/scalar_text.h"
#include "codegen/multi_tensor/chunk.h"
#include <cmath>

namespace fusor::codegen {

using namespace ir;

namespace {

constexpr int64_t kLongestHistory = 65536; // one chunk

llvm::Expected<int64_t> chunksOf(const MultiTensorPlan &plan, const TensorTable &table) {
  int64_t chunks = 0;
  for (const TensorTable::Tensor &tensor : table.tensors) {
    if (!tensor.elements.isConstant())
      return opError("tensors of a multi-tensor kernel need fixed sizes, found {0}", tensor.elements.str());
    chunks += table.chunks(&tensor - table.tensors.data(), tensor.elements.value());
  }
  return chunks;
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
  table.tileSide = plan->turned.empty() ? 0 : kSide;
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
    for (unsigned output : tensor.turnedOutputs) entry.pointers.push_back({true, output});
    entry.columns = tensor.columns;
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
    if (auto error = emitUpdate(body, set, *plan, *chunks)) return error;
  }
  set.table = std::move(table);
  return llvm::Error::success();
}

} // namespace fusor::codegen
