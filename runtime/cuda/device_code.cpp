#include "runtime/cuda/device_code.h"
#include "codegen/emit/body.h"
#include "codegen/emit/header.h"
#include "codegen/loop/emit_loop.h"
#include "ir/ops/op_def.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::runtime {

using namespace ir;

namespace {

// What follows a GEMM whose f32 product is in workspace 0.
llvm::Expected<codegen::KernelSet> emitBehindGemm(const Op &op, codegen::Naming naming) {
  auto body = codegen::fusionBody(op, naming);
  if (!body) return body.takeError();
  auto plan = codegen::planContraction(body->flat);
  if (!plan) return plan.takeError();
  codegen::KernelSet set;
  codegen::describe(*body, set);
  set.workspaces.push_back(codegen::Count(plan->batch * plan->m * plan->n) * codegen::Count(4));
  if (auto error = codegen::emitLoop(*body, plan->epilogue, set, 0u)) return error;
  return set;
}

DeviceCode unlowered(const Op &op) {
  DeviceCode code;
  code.op = &op;
  bool isFusion = op.is("fusion");
  code.name = isFusion && op.site().has("name") ? op.attr<std::string>("name") : op.name().str();
  code.kind = isFusion && op.site().has("kind") ? op.attr<std::string>("kind") : op.name().str();
  code.inputs = ReferenceBody::inputsOf(op);
  code.body = std::make_shared<ReferenceBody>(op);
  return code;
}

} // namespace

bool DeviceCode::mayOverwrite(unsigned result, unsigned operand) const {
  if (runsOnHost() || (gemm && kernels.empty())) return false;
  Value value = op->operand(operand);
  if (byteSize(value.dtype()) != byteSize(op->result(result).dtype())) return false;
  // Every operand that is this value; fusions may be given one twice.
  for (unsigned i = 0; i < op->operands().size(); ++i) {
    if (op->operand(i) != value) continue;
    bool isInPlace =
        llvm::any_of(set.inPlace, [&](const codegen::InPlace &p) { return p.input == i && p.output == result; });
    if (!isInPlace) return false;
  }
  return true;
}

unsigned DeviceKernels::numberOf(codegen::Kernel kernel, const std::string &canonical) {
  auto [it, isNew] = byText_.try_emplace(canonical, kernels_.size());
  if (isNew) {
    kernels_.emplace_back();
    kernels_.back().code = std::move(kernel);
  }
  return it->second;
}

bool DeviceKernels::lowerToLibrary(const Op &op, DeviceCode &code) {
  auto failed = [](llvm::Error error) {
    llvm::consumeError(std::move(error)); // the own kernels are tried next, and say why not
    return false;
  };
  for (Value operand : op.operands())
    if (operand.type().granularity != Granularity::none) return false;
  auto flat = codegen::flatten(op);
  if (!flat) return failed(flat.takeError());
  auto plan = codegen::planContraction(*flat);
  if (!plan) return failed(plan.takeError());
  if (!isLibraryGemm(*plan)) return false;
  if (auto whole = wholeCall(*plan)) {
    code.gemm = std::move(whole);
    return true;
  }
  auto canonical = emitBehindGemm(op, codegen::Naming::canonical);
  if (!canonical) return failed(canonical.takeError());
  auto set = emitBehindGemm(op, codegen::Naming::pretty);
  if (!set) return failed(set.takeError());
  code.gemm = productCall(*plan, 0);
  for (unsigned i = 0; i < set->kernels.size(); ++i)
    code.kernels.push_back(numberOf(set->kernels[i], canonical->kernels[i].source));
  code.set = std::move(*set);
  return true;
}

llvm::StringMap<std::vector<DeviceCode>> DeviceKernels::lower(const Module &module) {
  codegen::FunctionKernels emitted = codegen::kernelsOf(module, target_);
  llvm::DenseMap<const Op *, codegen::FunctionKernels::Fusion *> fusionOf;
  llvm::DenseMap<const Op *, std::string> refusalOf;
  for (auto &fusion : emitted.fusions) fusionOf[fusion.op] = &fusion;
  for (auto &refused : emitted.refused) refusalOf[refused.op] = refused.reason;

  auto lowerOp = [&](const Op &op) {
    DeviceCode code = unlowered(op);
    if (libraryGemm_ && code.kind == codegen::name(codegen::ClusterKind::contraction) && lowerToLibrary(op, code))
      return code;
    if (auto *fusion = fusionOf.lookup(&op)) {
      code.name = fusion->set.name;
      for (unsigned number : fusion->kernels) {
        const codegen::Kernel &shared = emitted.kernels[number].kernel;
        code.kernels.push_back(numberOf(shared, shared.source));
      }
      code.set = std::move(fusion->set);
      return code;
    }
    code.kind = "reference";
    auto refusal = refusalOf.find(&op);
    code.whyHost = refusal != refusalOf.end() ? refusal->second
                                              : "no kernel class takes '" + op.name().str() + "' outside a fusion";
    return code;
  };
  llvm::StringMap<std::vector<DeviceCode>> codes;
  for (const auto &function : module.functions()) {
    std::vector<DeviceCode> &list = codes[function->name()];
    for (const Op &op : function->block().ops()) {
      bool isConstant = op.operands().empty() && !op.body();
      if (!op.def().isTerminator && op.def().lowering != Lowering::view && !isConstant) list.push_back(lowerOp(op));
    }
  }
  return codes;
}

} // namespace fusor::runtime
