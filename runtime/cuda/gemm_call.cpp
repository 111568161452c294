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

// The input that holds `value` as a vector over the columns.
std::optional<unsigned> biasInput(const codegen::LoopPlan &plan, Value value, DType &type) {
  const LoopStep *bias = loadBehind(plan, value);
  if (!bias || bias->span != Span::column || bias->access.input == codegen::kAccumulator) return std::nullopt;
  if (!bias->access.offset.is(0) || bias->access.strides.empty() || !bias->access.strides.back().is(1))
    return std::nullopt;
  type = bias->result.dtype();
  return bias->access.input;
}

Op *onlyUser(Value value) { return value.users().size() == 1 ? value.users().front() : nullptr; }

} // namespace

bool isLibraryGemm(const ContractionPlan &plan) {
  DType type = plan.a.dtype;
  return type == plan.b.dtype && (type == DType::f32 || type == DType::bf16 || type == DType::f16);
}

GemmPart gemmPart(const ContractionPlan &plan, Value product) {
  GemmPart part{product, {}};
  part.call.a = plan.a, part.call.b = plan.b;
  part.call.m = plan.m, part.call.n = plan.n, part.call.k = plan.k, part.call.batch = plan.batch;

  Value sum = product; // with the bias, which has to be of D's type
  std::optional<unsigned> bias;
  DType biasType = DType::f32;
  if (Op *add = onlyUser(product); add && add->is("add") && add->result().dtype() == DType::f32) {
    bias = biasInput(plan.epilogue, add->operand(add->operand(0u) == product ? 1 : 0), biasType);
    if (bias) sum = add->result();
  }
  Op *cast = onlyUser(sum);
  bool isRounded = cast && cast->is("cast") && cast->result().dtype() == plan.a.dtype && plan.a.dtype != DType::f32;
  if (bias && biasType != (isRounded ? plan.a.dtype : DType::f32)) return part;
  part.call.bias = bias;
  part.value = isRounded ? cast->result() : sum;
  part.call.outputType = part.value.dtype();
  return part;
}

std::optional<GemmCall> wholeCall(const ContractionPlan &plan, const GemmPart &part) {
  const codegen::LoopPlan &epilogue = plan.epilogue;
  if (!epilogue.sums.empty() || epilogue.stores.size() != 1) return std::nullopt;
  const codegen::LoopStore &store = epilogue.stores[0];
  if (store.value != part.value || store.span != Span::full || !store.access.contiguous) return std::nullopt;
  GemmCall call = part.call;
  call.output = store.output;
  return call;
}

} // namespace fusor::runtime
