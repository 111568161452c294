#include "runtime/cpu/cluster_code.h"
#include "codegen/plan/accept.h"
#include "ir/graph/bug.h"
#include "passes/memory/memory_plan.h"
#include "runtime/cpu/attention_step.h"
#include "runtime/cpu/contraction_step.h"
#include "runtime/cpu/loop_step.h"
#include "runtime/cpu/movement_steps.h"
#include "runtime/cpu/multi_tensor_step.h"
#include "runtime/cpu/native_steps.h"
#include "runtime/cpu/split_step.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::runtime {

using namespace ir;
using codegen::ClusterKind;

namespace {

llvm::Expected<codegen::FlatCluster> flattened(const Op &op, llvm::ArrayRef<Value> inputs) {
  if (op.is("fusion")) return codegen::flatten(op);
  auto results = op.results();
  return codegen::flatten({const_cast<Op *>(&op)}, inputs, results);
}

bool isQuantised(const Op &op) {
  auto quantised = [](Value v) { return v && v.type().granularity != Granularity::none; };
  return llvm::any_of(op.operands(), quantised) || llvm::any_of(op.results(), quantised);
}

bool planNative(ClusterCode &code, bool anyDims) {
  const Op *native = nativeOp(*code.op, anyDims);
  if (!native) return false;
  code.plan = NativePlan{native};
  code.kind = "native";
  return true;
}

// softmax over a middle dim, a reduction inside a chain ...: the small ops of the flat body, one after the other.
bool planSplit(ClusterCode &code, const Target &target) {
  if (!code.flat.function) return false;
  Block &body = code.flat.function->block();
  unsigned ops = 0;
  for (const Op &op : body.ops()) ops += !op.def().isTerminator && !op.operands().empty();
  bool isExpanded =
      !body.ops().empty() && (code.op->is("fusion") ? true : &body.ops().front().def() != &code.op->def());
  if (ops < 2 && !isExpanded) return false;
  if (ops < 2 && code.op->is("fusion") && code.op->body()->ops().size() <= 2) return false;
  SplitPlan split;
  for (const Op &op : body.ops()) {
    bool isConstant = op.operands().empty() && !op.body();
    if (op.def().isTerminator || op.def().lowering == Lowering::view || isConstant) continue;
    split.parts.push_back(std::make_unique<ClusterCode>(lowerForCpu(op, target)));
  }
  code.plan = std::move(split);
  code.kind = "split";
  return true;
}

llvm::Error plan(ClusterCode &code, const Target &target) {
  const Op &op = *code.op;
  if (isQuantised(op)) return opError("quantised tensors have no CPU kernels yet");
  auto keep = [&](auto plan) -> llvm::Error {
    if (!plan) return plan.takeError();
    code.plan = std::move(*plan);
    return llvm::Error::success();
  };
  if (planNative(code, false)) return llvm::Error::success();
  bool isMultiTensor =
      op.is("fusion") && op.site().has("kind") && op.attr<std::string>("kind") == name(ClusterKind::multiTensor);
  if (isMultiTensor) {
    code.kind = name(ClusterKind::multiTensor).str();
    return keep(codegen::planMultiTensor(op));
  }
  if (op.is("global_norm")) {
    codegen::MultiTensorPlan norm;
    norm.isGlobalNorm = true;
    for (Value operand : op.operands())
      norm.tensors.push_back({{static_cast<unsigned>(llvm::find(code.inputs, operand) - code.inputs.begin())},
                              {},
                              operand.type().elements()});
    code.kind = name(ClusterKind::multiTensor).str();
    code.plan = std::move(norm);
    return llvm::Error::success();
  }
  auto flat = flattened(op, code.inputs);
  if (!flat) return flat.takeError();
  code.flat = std::move(*flat);
  auto kind = codegen::accept(code.flat, target);
  if (!kind) return kind.takeError();
  code.kind = name(*kind).str();
  switch (*kind) {
  case ClusterKind::pointwise:
  case ClusterKind::row:
  case ClusterKind::column: return keep(codegen::planLoop(code.flat));
  case ClusterKind::contraction: return keep(codegen::planContraction(code.flat));
  case ClusterKind::attention: {
    auto attention = codegen::planAttention(code.flat);
    if (attention && attention->dtype == DType::f64) return opError("attention in f64 has no CPU kernel");
    return keep(std::move(attention));
  }
  case ClusterKind::scatter: return keep(codegen::planScatter(code.flat));
  case ClusterKind::movement: return keep(codegen::planMovement(code.flat));
  case ClusterKind::multiTensor: return opError("a multi-tensor kernel is made by fusion alone");
  }
  llvm_unreachable("every kind is handled above");
}

// Reads of `input` are all at the place where `output` is written.
bool mayOverwrite(const codegen::LoopPlan &plan, unsigned output, unsigned input) {
  bool isStored = false;
  for (const codegen::LoopStore &store : plan.stores)
    isStored |= store.output == output && store.span == Span::full && store.access.contiguous;
  if (!isStored) return false;
  auto readsElsewhere = [&](const codegen::LoopStep &step, bool isFinish) {
    using Kind = codegen::LoopStep::Kind;
    if (step.kind != Kind::load && step.kind != Kind::random) return false;
    if (step.access.gather && step.access.gather->indices == input) return true;
    if (step.access.input != input) return false;
    return isFinish || step.kind == Kind::random || step.span != Span::full || !step.access.contiguous ||
           step.access.gather.has_value();
  };
  for (const codegen::LoopStep &step : plan.main)
    if (readsElsewhere(step, false)) return false;
  for (const codegen::LoopStep &step : plan.finish)
    if (readsElsewhere(step, true)) return false;
  // A result that is the input itself would be copied after it was overwritten.
  for (const codegen::LoopStep &step : plan.main)
    if (step.kind == codegen::LoopStep::Kind::load && step.access.input == input)
      for (const codegen::LoopStore &store : plan.stores)
        if (store.value == step.result) return false;
  return true;
}

} // namespace

// A product whose right operand is a constant in f32, one for all batches.
static void findWeight(ClusterCode &code) {
  const auto *gemm = std::get_if<codegen::ContractionPlan>(&code.plan);
  if (!gemm || !gemm->b.batchStride.is(0) || gemm->b.dtype != DType::f32) return;
  Value weight = code.inputs[gemm->b.input];
  if (!weight.isPersistent()) return;
  const Persistent *p = code.op->function()->module().persistent(weight.name());
  if (p->kind != PersistentKind::constant || p->type.dtype != DType::f32) return;
  code.weight = p->name;
  code.packed = std::make_shared<PackedWeight>();
}

ClusterCode lowerForCpu(const Op &op, const Target &target) {
  ClusterCode code;
  code.op = &op;
  code.name = op.is("fusion") && op.site().has("name") ? op.attr<std::string>("name") : op.name().str();
  code.inputs = ReferenceBody::inputsOf(op);
  if (auto error = plan(code, target)) {
    code.whyReference = llvm::toString(std::move(error));
    code.plan = std::monostate();
    code.kind = "reference";
    if (!isQuantised(op) && !planNative(code, true)) planSplit(code, target);
  }
  code.body = std::make_shared<ReferenceBody>(op);
  findWeight(code);
  return code;
}

std::string ClusterCode::fallbackReason() const {
  if (isReference()) return whyReference;
  if (const auto *split = std::get_if<SplitPlan>(&plan))
    for (const auto &part : split->parts)
      if (std::string reason = part->fallbackReason(); !reason.empty()) return reason;
  return "";
}

bool mayOverwrite(const ClusterCode &code, unsigned result, unsigned operand) {
  if (!code.op->operand(operand)) return false;
  Value value = code.op->operand(operand);
  if (byteSize(value.dtype()) != byteSize(code.op->result(result).dtype())) return false;
  // Every input of the plan that is this value; fusions may pass one value twice.
  for (unsigned input = 0; input < code.inputs.size(); ++input) {
    if (code.inputs[input] != value) continue;
    bool ok = false;
    if (const auto *loop = std::get_if<codegen::LoopPlan>(&code.plan)) {
      ok = mayOverwrite(*loop, result, input);
    } else if (const auto *contraction = std::get_if<codegen::ContractionPlan>(&code.plan)) {
      ok = contraction->a.input != input && contraction->b.input != input &&
           mayOverwrite(contraction->epilogue, result, input);
    } else if (const auto *movement = std::get_if<codegen::MovementPlan>(&code.plan)) {
      ok = movement->startsFrom == input &&
           llvm::none_of(movement->copies, [&](auto &copy) { return copy.input == input; });
    } else if (const auto *tensors = std::get_if<codegen::MultiTensorPlan>(&code.plan)) {
      unsigned uses = 0;
      for (const auto &tensor : tensors->tensors) {
        auto in = llvm::find(tensor.inputs, input);
        if (in == tensor.inputs.end()) continue;
        ++uses;
        auto out = llvm::find(tensor.outputs, result);
        ok = out != tensor.outputs.end() &&
             mayOverwrite(tensors->loop, out - tensor.outputs.begin(), in - tensor.inputs.begin());
      }
      ok &= uses == 1 && !llvm::is_contained(tensors->sharedInputs, input);
    } else if (const auto *native = std::get_if<NativePlan>(&code.plan)) {
      llvm::ArrayRef<Value> yielded;
      if (native->op->is("fusion")) yielded = native->op->body()->terminator()->operands();
      ok = native->op->is("amax_update") && result == input && result < 2;
      if (native->op->is("fusion"))
        for (const Op &update : native->op->body()->ops())
          for (unsigned i = 0; i < 2 && update.is("amax_update"); ++i)
            ok |= update.operand(i).index() == input && update.result(i) == yielded[result];
    }
    if (!ok) return false;
  }
  return true;
}

std::unique_ptr<Step> instantiate(const ClusterCode &code, const SymbolValues &symbols,
                                  llvm::ArrayRef<llvm::SmallVector<unsigned, 1>> overlaps, Isa isa) {
  llvm::SmallVector<DType, 8> inputs, outputs;
  for (Value input : code.inputs) inputs.push_back(input.dtype());
  for (Value result : code.op->results()) outputs.push_back(result.dtype());
  LoopKernel::Options options;
  options.inputs = inputs, options.outputs = outputs, options.overlaps = overlaps, options.isa = isa;
  if (const auto *loop = std::get_if<codegen::LoopPlan>(&code.plan))
    return std::make_unique<LoopStep>(*loop, symbols, options);
  if (const auto *gemm = std::get_if<codegen::ContractionPlan>(&code.plan))
    return std::make_unique<ContractionStep>(*gemm, symbols, options, code.packed);
  if (const auto *attention = std::get_if<codegen::AttentionPlan>(&code.plan))
    return std::make_unique<AttentionStep>(*attention, symbols, inputs, isa);
  if (const auto *scatter = std::get_if<codegen::ScatterPlan>(&code.plan))
    return std::make_unique<ScatterStep>(*scatter, symbols, isa);
  if (const auto *tensors = std::get_if<codegen::MultiTensorPlan>(&code.plan))
    return std::make_unique<MultiTensorStep>(*tensors, symbols, inputs, outputs, isa);
  if (const auto *movement = std::get_if<codegen::MovementPlan>(&code.plan)) {
    llvm::SmallVector<int64_t, 2> bytes;
    for (Value result : code.op->results()) bytes.push_back(*passes::storageBytes(result.type(), symbols));
    return std::make_unique<MovementStep>(*movement, symbols, inputs, outputs, bytes);
  }
  if (const auto *native = std::get_if<NativePlan>(&code.plan)) return makeNativeStep(*native->op, symbols, isa);
  if (const auto *split = std::get_if<SplitPlan>(&code.plan))
    return std::make_unique<SplitStep>(*code.flat.function, split->parts, symbols, isa);
  return std::make_unique<ReferenceStep>(code.body, symbols);
}

} // namespace fusor::runtime
