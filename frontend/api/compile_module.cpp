#include "frontend/api/compile_module.h"
#include "frontend/dump/dump_folder.h"
#include "frontend/dump/module_files.h"
#include "llvm/Support/MemoryBuffer.h"
#include <algorithm>
#include <chrono>
#include <unistd.h>

namespace fusor::frontend {

namespace {

/// Bytes of memory this process may have: the machine's, or its control group's limit where that is less.
int64_t memoryBytes() {
  auto bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  int64_t limit = 0;
  if (auto file = llvm::MemoryBuffer::getFileAsStream("/sys/fs/cgroup/memory.max"))
    if (!(*file)->getBuffer().trim().getAsInteger(10, limit) && limit > 0) bytes = std::min(bytes, limit);
  return bytes;
}

} // namespace

CompileRequest::CompileRequest(const DeviceSettings &settings) {
  program.threads = settings.threads;
  program.strict = settings.strict;
  program.check = settings.check;
  program.timeGemms = !settings.deterministic;
  program.ownGemm = settings.ownGemm;
  program.cacheDir = settings.cacheDir;
  for (const std::string &rule : settings.disabledRules) passes.disabledRules.insert(rule);
  passes.fuel = settings.fuel;
  program.forDump = !settings.dumpDir.empty();
  dumpFolder = settings.dumpDir;
}

std::string fillDims(ir::SymbolValues &symbols, const ir::Module &module, int64_t size) {
  std::string text;
  for (const auto &[name, range] : module.symbols()) {
    symbols.try_emplace(name, std::clamp(size, range.low, range.high));
    text += " " + name + "=" + std::to_string(symbols[name]);
  }
  return text;
}

llvm::Expected<Compiled> compileModule(std::unique_ptr<ir::Module> module, const ChosenDevice &device,
                                       CompileRequest request) {
  auto start = std::chrono::steady_clock::now();
  request.passes.target = device.target;
  request.passes.target.hasCublasLt &= !request.program.ownGemm;
  if (device.target.kind == ir::DeviceKind::cpu && request.program.memoryLimitBytes == 0)
    request.program.memoryLimitBytes = memoryBytes(); // what cannot fit is an error, not a killed process
  request.program.device = device.ordinal;
  request.passes.explain |= !request.dumpFolder.empty(); // near misses are in fusions.json too
  for (const auto &known : request.program.symbols) request.passes.sizes.try_emplace(known.getKey(), known.getValue());
  fillDims(request.passes.sizes, *module, kDecisionSize);
  passes::PassContext context(request.passes);
  std::optional<ModuleFiles> files;
  if (!request.dumpFolder.empty()) {
    auto begun = ModuleFiles::begin(request.dumpFolder, *module);
    if (!begun) return begun.takeError();
    files = std::move(*begun);
  }
  Compiled compiled;
  llvm::Error dumped = llvm::Error::success();
  auto observe = [&](const passes::PassReport &report, const ir::Module &after) {
    compiled.passSpans.push_back({"pass", report.name.str(), 0, runtime::spanClockMs() - report.timeMs, report.timeMs});
    if (files && !dumped) dumped = files->add(report, after);
  };
  if (auto error = passes::runPipeline(*module, request.pipeline, context, observe))
    return llvm::joinErrors(std::move(error), std::move(dumped));
  if (dumped) return dumped;
  compiled.decisions = context.decisions().vec();
  if (files) {
    if (auto error = files->finish()) return error;
    if (auto error = writeInto(request.dumpFolder, "fusions.json", decisionsJson(compiled.decisions))) return error;
  }
  auto program = runtime::compile(std::move(module), device.target, std::move(request.program));
  if (!program) return program.takeError();
  compiled.program = std::move(*program);
  compiled.compileMs = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return compiled;
}

} // namespace fusor::frontend
