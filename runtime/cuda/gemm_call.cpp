#include "runtime/cuda/gemm_call.h"

namespace fusor::runtime {

using namespace ir;
using codegen::ContractionPlan;
using codegen::LoopStep;
using codegen::Span;

namespace {

const LoopStep *stepOf(const codegen::LoopPlan &plan, Value value) {
  for (const LoopStep &step : plan.main)
    if (step.result == value) return &step;
  return nullptr;
}

// Behind casts, the load that makes `value`.
const LoopStep *loadBehind(const codegen::LoopPlan &plan, Value value) {
  const LoopStep *step = stepOf(plan, value);
  while (step && step->op && step->op->is("cast")) step = stepOf(plan, step->op->operand(0));
  return step && step->kind == LoopStep::Kind::load && !step->access.gather ? step : nullptr;
}

bool isProduct(const LoopStep *load) {
  return load && load->access.input == codegen::kAccumulator && load->access.contiguous;
}

} // namespace

bool isLibraryGemm(const ContractionPlan &plan) {
  DType type = plan.a.dtype;
  return type == plan.b.dtype && (type == DType::f32 || type == DType::bf16 || type == DType::f16);
}

GemmCall productCall(const ContractionPlan &plan, unsigned workspace) {
  GemmCall call;
  call.a = plan.a, call.b = plan.b;
  call.m = plan.m, call.n = plan.n, call.k = plan.k, call.batch = plan.batch;
  call.workspace = workspace;
  return call;
}

std::optional<GemmCall> wholeCall(const ContractionPlan &plan) {
  const codegen::LoopPlan &epilogue = plan.epilogue;
  if (!epilogue.sums.empty() || !epilogue.finish.empty() || !epilogue.finishStores.empty() ||
      epilogue.stores.size() != 1)
    return std::nullopt;
  const codegen::LoopStore &store = epilogue.stores[0];
  if (store.span != Span::full || !store.access.contiguous) return std::nullopt;
  GemmCall call = productCall(plan, 0);
  call.workspace = std::nullopt;
  call.output = store.output;
  call.outputType = store.value.dtype();
  if (call.outputType != DType::f32 && call.outputType != plan.a.dtype) return std::nullopt;

  // One rounding of what is stored, and below it the product, or the product and a bias.
  Value value = store.value;
  const LoopStep *step = stepOf(epilogue, value);
  if (step && step->op && step->op->is("cast") && step->op->operand(0).dtype() == DType::f32)
    step = stepOf(epilogue, step->op->operand(0));
  if (isProduct(step)) return call;
  if (!step || !step->op || !step->op->is("add") || step->result.dtype() != DType::f32) return std::nullopt;
  for (unsigned side : {0u, 1u}) {
    const LoopStep *product = stepOf(epilogue, step->op->operand(side));
    const LoopStep *bias = loadBehind(epilogue, step->op->operand(1 - side));
    if (!isProduct(product) || !bias || bias->span != Span::column || bias->access.input == codegen::kAccumulator)
      continue;
    bool isVector = bias->access.offset.is(0) && !bias->access.strides.empty() && bias->access.strides.back().is(1);
    if (!isVector || bias->result.dtype() != call.outputType) continue;
    call.bias = bias->access.input;
    return call;
  }
  return std::nullopt;
}

} // namespace fusor::runtime
