#include "runtime/cuda/kernel_folder.h"
#include "codegen/emit/kernel_files.h"
#include "ir/ops/op_def.h"
#include "runtime/checkpoint/atomic_file.h"
#include "runtime/cuda/nvrtc.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace fusor::runtime {

namespace {

llvm::Error writeFile(llvm::StringRef folder, llvm::StringRef path, llvm::StringRef text) {
  llvm::SmallString<256> full(folder);
  llvm::sys::path::append(full, path);
  if (auto error = llvm::sys::fs::create_directories(llvm::sys::path::parent_path(full)))
    return llvm::createStringError(error, "cannot make the folder of %s: %s", full.c_str(), error.message().c_str());
  auto file = AtomicFile::create(full);
  if (!file) return file.takeError();
  if (auto error = file->write(text)) return error;
  return file->commit(/*durable=*/false);
}

// 75 of "sm_75", 90 of "sm_90a".
int numberOf(llvm::StringRef arch) {
  int number = 0;
  arch.split('_').second.take_while(llvm::isDigit).getAsInteger(10, number);
  return number;
}

} // namespace

llvm::Expected<KernelFolderReport> writeKernelFolder(const ir::Module &module, llvm::ArrayRef<std::string> archs,
                                                     llvm::StringRef folder) {
  ir::Target target;
  target.kind = ir::DeviceKind::cuda;
  codegen::FunctionKernels kernels = codegen::kernelsOf(module, target);
  KernelFolderReport report;
  report.kernels = kernels.kernels.size();
  for (const auto &distinct : kernels.kernels) report.launches += distinct.uses;
  for (const auto &refused : kernels.refused) {
    std::string ops;
    for (const ir::Op &op : refused.op->body()->ops())
      if (!op.def().isTerminator) ops += (ops.empty() ? "" : " ") + op.name().str();
    report.refused.push_back({ops, refused.reason});
  }
  for (const codegen::KernelFile &file : codegen::kernelFiles(kernels))
    if (auto error = writeFile(folder, file.path, file.text)) return error;

  auto nvrtc = loadNvrtc(NvrtcOptions::fromEnvironment());
  if (!nvrtc) {
    report.compiler = llvm::toString(nvrtc.takeError());
    return report;
  }
  report.compiler = "NVRTC " + nvrtc->version() + ", " + nvrtc->path();
  for (const std::string &arch : archs) {
    if (!nvrtc->supports(numberOf(arch))) {
      report.skipped.push_back(arch);
      continue;
    }
    for (const auto &distinct : kernels.kernels) {
      const std::vector<std::string> flags = {"--std=c++17"};
      auto compiled = nvrtc->compile({distinct.kernel.source, distinct.kernel.name, arch, flags});
      if (!compiled) return compiled.takeError();
      if (auto error = writeFile(folder, distinct.kernel.name + "/" + arch + (compiled->isPtx ? ".ptx" : ".cubin"),
                                 compiled->image))
        return error;
      ++report.cubins;
    }
  }
  return report;
}

} // namespace fusor::runtime
