// fusor emit: the CUDA sources of a module, and cubins where an NVRTC is found. Needs no GPU.
//
//   DIR/<kernel>/kernel.cu              the source, self-contained
//   DIR/<kernel>/kernel.json            what it implements, its launch, who uses it
//   DIR/<kernel>/kernel.<arch>.cubin    for each --arch
#include "codegen/emit/kernel_files.h"
#include "frontend/cli/load_module.h"
#include "frontend/cli/verbs.h"
#include "frontend/dump/dump_folder.h"
#include "runtime/cuda/nvrtc.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::frontend::cli {
namespace {

/// 90 of "sm_90a"; 0 where it is no architecture.
int archNumber(llvm::StringRef arch) {
  int number = 0;
  return arch.consume_front("sm_") && !arch.rtrim('a').getAsInteger(10, number) && number >= 50 ? number : 0;
}

/// "sm_90a" to a target; the tier is the best the architecture has, or the one asked for.
llvm::Expected<ir::Target> targetOf(llvm::StringRef arch, llvm::StringRef tier) {
  ir::Target target;
  target.kind = ir::DeviceKind::cuda;
  target.arch = arch.str();
  int number = archNumber(arch);
  if (number == 0) return failure(ErrorKind::usage, "--arch needs names like sm_75 or sm_90a, found '{0}'", arch);
  target.hasFp8 = number >= 89;
  target.hasCublasLt = number >= 75;
  target.tier = number == 90 ? ir::ArchTier::sm90a : number >= 80 ? ir::ArchTier::sm80 : ir::ArchTier::simt;
  if (tier == "simt") target.tier = ir::ArchTier::simt;
  if (tier == "sm80" && number >= 80) target.tier = ir::ArchTier::sm80;
  return target;
}

/// The kernels of the module, or of one of its functions, after the passes.
llvm::Expected<codegen::FunctionKernels> kernelsOf(const CommonOptions &common, const EmitOptions &o,
                                                   const ir::Target &target, std::unique_ptr<ir::Module> &module) {
  auto loaded = loadModule(o);
  if (!loaded) return loaded.takeError();
  auto options = passOptions(common, o, *loaded->module);
  if (!options) return options.takeError();
  options->target = target;
  options->target.hasCublasLt &= common.blas != "own";
  passes::PassContext context(*options);
  if (auto error = passes::runPipeline(*loaded->module, loaded->pipeline, context)) return error;
  module = std::move(loaded->module);
  if (o.function.empty()) return codegen::kernelsOf(*module, target);
  const ir::Function *function = module->function(o.function);
  if (!function) return inputError("after the passes there is no function @{0}", o.function);
  return codegen::kernelsOf(*function, target);
}

llvm::Error emitAll(Console &console, const CommonOptions &common, const EmitOptions &o) {
  std::vector<std::string> archs = o.archs;
  if (archs.empty()) archs = {"sm_75"};
  llvm::Optional<runtime::Nvrtc> nvrtc;
  if (!o.archs.empty() && !o.out.empty()) {
    auto options = runtime::NvrtcOptions::fromEnvironment();
    options.requiredArch = archNumber(archs[0]);
    for (const std::string &arch : archs) options.requiredArch = std::min(options.requiredArch, archNumber(arch));
    auto found = runtime::loadNvrtc(options);
    if (found)
      nvrtc = *found;
    else
      console.note("sources only, no cubins: " + llvm::toString(found.takeError()));
  }
  bool first = true;
  for (const std::string &arch : archs) {
    auto target = targetOf(arch, common.archTier);
    if (!target) return target.takeError();
    std::unique_ptr<ir::Module> module;
    auto kernels = kernelsOf(common, o, *target, module);
    if (!kernels) return kernels.takeError();
    for (const auto &refused : kernels->refused) {
      if (common.strict) return inputError("no kernel for a fusion: {0}", refused.reason);
      if (first) console.warning("no kernel for a fusion: " + refused.reason);
    }
    if (!o.out.empty())
      for (const codegen::KernelFile &file : codegen::kernelFiles(*kernels))
        if (auto error = writeInto(o.out, file.path, file.text)) return error;
    for (const codegen::DistinctKernel &k : kernels->kernels) {
      if (o.out.empty()) {
        if (first) console.result(llvm::StringRef(k.kernel.source).rtrim('\n'));
        continue;
      }
      if (!nvrtc) continue;
      auto compiled = nvrtc->compile({.source = k.kernel.source, .name = k.kernel.name, .arch = arch});
      if (!compiled)
        return failure(ErrorKind::bug, "{0}\nnote: the source is {1}/{2}/kernel.cu",
                       llvm::toString(compiled.takeError()), o.out, k.kernel.name);
      std::string ending = compiled->isPtx ? ".ptx" : ".cubin";
      if (auto error = writeInto(o.out, k.kernel.name + "/kernel." + arch + ending, compiled->image)) return error;
    }
    console.object({{"arch", arch},
                    {"kernels", static_cast<int64_t>(kernels->kernels.size())},
                    {"fusions", static_cast<int64_t>(kernels->fusions.size())},
                    {"refused", static_cast<int64_t>(kernels->refused.size())},
                    {"cubins", nvrtc.hasValue()}});
    if (!o.out.empty())
      console.say(llvm::formatv("{0}: {1} kernels for {2} fusions in {3}{4}", arch, kernels->kernels.size(),
                                kernels->fusions.size(), o.out, nvrtc ? ", compiled" : "")
                      .str());
    first = false;
  }
  return llvm::Error::success();
}

} // namespace

int emit(const CommonOptions &common, const EmitOptions &options) {
  Console console(common);
  return console.fail(emitAll(console, common, options));
}

} // namespace fusor::frontend::cli
