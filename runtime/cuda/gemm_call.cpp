#include "runtime/cuda/gemm_call.h"
#include "ir/ops/op_def.h"

namespace fusor::runtime {

using namespace ir;
using codegen::ContractionPlan;
using codegen::LoopStep;
using codegen::Span;

namespace {

bool isFp8(const ContractionPlan &plan) { return ir::isFp8(plan.a.dtype) && ir::isFp8(plan.b.dtype); }
bool isFp8(const GemmCall &call) { return ir::isFp8(call.a.dtype) && ir::isFp8(call.b.dtype); }

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

// The factors of a product, `value` in the end: inputs that are one f32.
Value scaledBy(Value value, std::optional<unsigned> (&scales)[2]) {
  for (auto &scale : scales) {
    Op *mul = onlyUser(value);
    if (!mul || !mul->is("mul")) return value;
    Value factor = mul->operand(mul->operand(0u) == value ? 1 : 0);
    if (!factor.isArgument() || factor.rank() != 0 || factor.dtype() != DType::f32) return value;
    scale = factor.index();
    value = mul->result();
  }
  return value;
}

// Of what `symbols` says, and of constants.
std::string whyNoMultiple(const Dim &k, const Dim &n, const SymbolValues &symbols) {
  for (const auto &[dim, what] : {std::pair{k, "terms a sum"}, {n, "columns"}}) {
    auto size = dim.evaluate(symbols);
    if (size && *size % kFp8Multiple != 0)
      return llvm::formatv("cuBLASLt's FP8 needs multiples of {0}, it has {1} {2}", kFp8Multiple, *size, what);
  }
  return "";
}

std::string whyNoFp8(const ContractionPlan &plan, const Target &target) {
  if (plan.a.dtype == DType::f8e8m0 || plan.b.dtype == DType::f8e8m0) return "f8e8m0 holds scales";
  if (!target.hasFp8) return "the device has no FP8 tensor cores";
  if (plan.a.dtype == DType::f8e5m2 && plan.b.dtype == DType::f8e5m2) return "cuBLASLt has no product of two E5M2";
  if (plan.a.transposed || !plan.b.transposed) return "cuBLASLt's FP8 operands lie along the sum";
  return whyNoMultiple(plan.k, plan.n, {});
}

} // namespace

std::string whyNoLibraryGemm(const ContractionPlan &plan, const Target &target) {
  if (isFp8(plan)) return whyNoFp8(plan, target);
  DType type = plan.a.dtype;
  if (type == plan.b.dtype && (type == DType::f32 || type == DType::bf16 || type == DType::f16)) return "";
  return llvm::formatv("cuBLASLt has no GEMM of {0} and {1}", name(type), name(plan.b.dtype));
}

std::string whySizesDoNotFit(const GemmCall &call, const SymbolValues &symbols) {
  return isFp8(call) ? whyNoMultiple(call.k, call.n, symbols) : "";
}

bool fitsAllSizes(const GemmCall &call) {
  return !isFp8(call) || (call.k.divide(kFp8Multiple) && call.n.divide(kFp8Multiple));
}

GemmPart gemmPart(const ContractionPlan &plan, Value product) {
  GemmPart part{product, {}};
  part.call.a = plan.a, part.call.b = plan.b;
  part.call.m = plan.m, part.call.n = plan.n, part.call.k = plan.k, part.call.batch = plan.batch;

  DType rounded = plan.a.dtype; // of what is not f32
  if (isFp8(plan)) {
    rounded = DType::bf16;
    part.value = scaledBy(product, part.call.scales);
    part.call.fastAccumulation = product.op()->is("linear") && product.op()->attr<bool>("fast_accum");
  }
  Value sum = part.value; // with the bias, which has to be of D's type
  std::optional<unsigned> bias;
  DType biasType = DType::f32;
  if (Op *add = onlyUser(sum); add && add->is("add") && add->result().dtype() == DType::f32) {
    bias = biasInput(plan.epilogue, add->operand(add->operand(0u) == sum ? 1 : 0), biasType);
    if (bias) sum = add->result();
  }
  Op *cast = onlyUser(sum);
  bool isRounded = cast && cast->is("cast") && cast->result().dtype() == rounded && rounded != DType::f32;
  if (bias && (biasType != (isRounded ? rounded : DType::f32) || (isFp8(plan) && !isRounded))) return part;
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
