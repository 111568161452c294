#include "frontend/api/compile_module.h"
#include "frontend/api/errors.h"
#include "runtime/checkpoint/atomic_file.h"
#include "runtime/checkpoint/file_error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <chrono>
#include <unistd.h>

namespace fusor::frontend {

llvm::Error writeDump(llvm::StringRef folder, const llvm::Twine &name, llvm::StringRef text) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  llvm::StringRef parent = llvm::sys::path::parent_path(path);
  if (std::error_code code = llvm::sys::fs::create_directories(parent))
    return llvm::make_error<runtime::FileError>(runtime::FileError::Action::Write, parent, code);
  auto file = runtime::AtomicFile::create(path);
  if (!file) return file.takeError();
  if (auto error = file->write(text)) return error;
  return file->commit(/*durable=*/false);
}

namespace {

// The fusions.json of a dump.
std::string decisionsJson(llvm::ArrayRef<passes::Decision> decisions) {
  llvm::json::Array array;
  for (const passes::Decision &d : decisions)
    array.push_back(llvm::json::Object{{"kind", passes::name(d.kind)},
                                       {"rule", d.rule},
                                       {"function", d.function},
                                       {"subject", d.subject},
                                       {"location", d.location.str()},
                                       {"reason", d.reason},
                                       {"bytes_saved", d.bytesSaved}});
  return llvm::formatv("{0:2}\n", llvm::json::Value(std::move(array))).str();
}

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
  program.dumpDir = settings.dumpDir;
}

llvm::Expected<Compiled> compileModule(std::unique_ptr<ir::Module> module, const ChosenDevice &device,
                                       CompileRequest request) {
  auto start = std::chrono::steady_clock::now();
  request.passes.target = device.target;
  request.passes.target.hasCublasLt &= !request.program.ownGemm;
  if (device.target.kind == ir::DeviceKind::cpu && request.program.memoryLimitBytes == 0)
    request.program.memoryLimitBytes = memoryBytes(); // what cannot fit is an error, not a killed process
  request.program.device = device.ordinal;
  const std::string &dump = request.program.dumpDir;
  passes::PassContext context(request.passes);
  llvm::Error dumped = llvm::Error::success();
  auto observe = [&](const passes::PassReport &report, const ir::Module &after) {
    if (dump.empty() || dumped) return;
    std::string name = llvm::formatv("modules/{0}_{1}.fir", llvm::format("%02u", report.index), report.name).str();
    dumped = writeDump(dump, name, after.str());
  };
  if (auto error = passes::runPipeline(*module, request.pipeline, context, observe))
    return llvm::joinErrors(std::move(error), std::move(dumped));
  if (dumped) return dumped;
  Compiled compiled;
  compiled.decisions = context.decisions().vec();
  if (!dump.empty())
    if (auto error = writeDump(dump, "fusions.json", decisionsJson(compiled.decisions))) return error;
  auto program = runtime::compile(std::move(module), device.target, std::move(request.program));
  if (!program) return program.takeError();
  compiled.program = std::move(*program);
  compiled.compileMs = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return compiled;
}

} // namespace fusor::frontend
