#include "runtime/cuda/device_code.h"
#include "codegen/emit/body.h"
#include "codegen/emit/header.h"
#include "codegen/loop/emit_loop.h"
#include "ir/ops/op_def.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::runtime {

using namespace ir;

namespace {

// A GEMM of the library and the loop behind it. D is a result of the fusion where it can be, else workspace 0.
struct LibraryCode {
  GemmCall call;
  codegen::KernelSet set;
};

llvm::Expected<LibraryCode> emitWithLibrary(const Op &op, const Target &target, codegen::Naming naming) {
  auto body = codegen::fusionBody(op, naming);
  if (!body) return body.takeError();
  auto plan = codegen::planContraction(body->flat);
  if (!plan) return plan.takeError();
  if (std::string why = whyNoLibraryGemm(*plan, target); !why.empty()) return opError("{0}", why);
  GemmPart part = gemmPart(*plan, body->flat.anchor->result());
  LibraryCode code;
  codegen::describe(*body, code.set);
  if (auto whole = wholeCall(*plan, part)) {
    code.call = std::move(*whole);
    return code;
  }
  auto loop = codegen::planLoop(body->flat, part.value);
  if (!loop) return loop.takeError();
  code.call = part.call;
  codegen::ProductPlace place{0, part.call.outputType};
  auto stored = llvm::find_if(loop->stores, [&](const codegen::LoopStore &store) {
    return store.value == part.value && store.span == codegen::Span::full && store.access.contiguous;
  });
  if (stored != loop->stores.end()) {
    place.index = *(code.call.output = stored->output);
    place.isOutput = true;
    loop->stores.erase(stored);
  } else {
    code.call.workspace = 0;
    code.set.workspaces.push_back(codegen::Count(plan->batch * plan->m * plan->n) *
                                  codegen::Count(byteSize(part.call.outputType)));
  }
  if (auto error = codegen::emitLoop(*body, *loop, target, code.set, place)) return error;
  return code;
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

const DeviceCode &DeviceCode::forSizes(const SymbolValues &symbols) const {
  return own && !whySizesDoNotFit(*gemm, symbols).empty() ? *own : *this;
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
  for (Value operand : op.operands())
    if (operand.type().granularity != Granularity::none) return false;
  auto canonical = emitWithLibrary(op, target_, codegen::Naming::canonical);
  if (!canonical) { // the own kernels are tried next
    code.whyOwn = llvm::toString(canonical.takeError());
    return false;
  }
  LibraryCode pretty = llvm::cantFail(emitWithLibrary(op, target_, codegen::Naming::pretty));
  code.gemm = std::move(pretty.call);
  for (unsigned i = 0; i < pretty.set.kernels.size(); ++i)
    code.kernels.push_back(numberOf(pretty.set.kernels[i], canonical->set.kernels[i].source));
  if (!code.kernels.empty()) code.set = std::move(pretty.set);
  return true;
}

llvm::StringMap<std::vector<DeviceCode>> DeviceKernels::lower(const Module &module) {
  codegen::FunctionKernels emitted = codegen::kernelsOf(module, target_);
  llvm::DenseMap<const Op *, codegen::FunctionKernels::Fusion *> fusionOf;
  llvm::DenseMap<const Op *, std::string> refusalOf;
  for (auto &fusion : emitted.fusions) fusionOf[fusion.op] = &fusion;
  for (auto &refused : emitted.refused) refusalOf[refused.op] = refused.reason;

  auto toOwnKernels = [&](const Op &op, DeviceCode code) {
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
  auto lowerOp = [&](const Op &op) {
    DeviceCode code = unlowered(op);
    bool mayCall = libraryGemm_ && code.kind == codegen::name(codegen::ClusterKind::contraction);
    if (!mayCall || !lowerToLibrary(op, code)) return toOwnKernels(op, std::move(code));
    if (!fitsAllSizes(*code.gemm)) code.own = std::make_shared<DeviceCode>(toOwnKernels(op, unlowered(op)));
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

llvm::Error DeviceKernels::load(const CudaContextRef &context, llvm::ArrayRef<std::string> images, bool keepsImages) {
  for (auto [kernel, image] : llvm::zip(kernels_, images)) {
    auto module = CudaModule::load(context, image, kernel.code.name);
    if (!module) return module.takeError();
    kernel.module = std::move(*module);
    auto function = kernel.module.function(kernel.code.name, kernel.code.sharedBytes);
    if (!function) return function.takeError();
    kernel.function = *function;
    if (keepsImages) kernel.image = image;
  }
  return llvm::Error::success();
}

} // namespace fusor::runtime
