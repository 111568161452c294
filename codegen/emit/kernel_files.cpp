#include "codegen/emit/kernel_files.h"
#include "llvm/Support/FormatVariadic.h"

namespace fusor::codegen {

llvm::StringRef name(KernelArg::Kind kind) {
  static constexpr const char *names[] = {"input",          "output",      "workspace",    "symbol",
                                          "table_pointers", "table_sizes", "table_chunks", "table_count"};
  return names[static_cast<unsigned>(kind)];
}

llvm::json::Object kernelJson(const Kernel &kernel) {
  llvm::json::Array arguments;
  for (const KernelArg &arg : kernel.args) {
    llvm::json::Object entry{{"name", arg.name}, {"kind", codegen::name(arg.kind)}};
    if (arg.kind == KernelArg::Kind::symbol)
      entry["symbol"] = arg.symbol;
    else if (arg.kind <= KernelArg::Kind::workspace)
      entry["index"] = arg.index;
    arguments.push_back(std::move(entry));
  }
  return llvm::json::Object{{"name", kernel.name},
                            {"grid", kernel.grid.str()},
                            {"block", kernel.block},
                            {"shared_bytes", kernel.sharedBytes},
                            {"arguments", std::move(arguments)}};
}

std::vector<KernelFile> kernelFiles(const FunctionKernels &kernels) {
  std::vector<KernelFile> files;
  for (const DistinctKernel &distinct : kernels.kernels) {
    files.push_back({distinct.kernel.name + "/kernel.cu", distinct.kernel.source});
    llvm::json::Object object = kernelJson(distinct.kernel);
    object["ir"] = distinct.ir, object["uses"] = distinct.uses;
    files.push_back(
        {distinct.kernel.name + "/kernel.json", llvm::formatv("{0:2}\n", llvm::json::Value(std::move(object))).str()});
  }
  return files;
}

} // namespace fusor::codegen
