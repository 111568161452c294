#include "codegen/emit/kernel_files.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace fusor::codegen {

namespace {

llvm::StringRef kindName(KernelArg::Kind kind) {
  static constexpr const char *names[] = {"input",          "output",      "workspace",    "symbol",
                                          "table_pointers", "table_sizes", "table_chunks", "table_count"};
  return names[static_cast<unsigned>(kind)];
}

std::string json(const DistinctKernel &distinct) {
  const Kernel &kernel = distinct.kernel;
  llvm::json::Array arguments;
  for (const KernelArg &arg : kernel.args) {
    llvm::json::Object entry{{"name", arg.name}, {"kind", kindName(arg.kind)}};
    if (arg.kind == KernelArg::Kind::symbol)
      entry["symbol"] = arg.symbol;
    else if (arg.kind <= KernelArg::Kind::workspace)
      entry["index"] = arg.index;
    arguments.push_back(std::move(entry));
  }
  llvm::json::Object object{{"name", kernel.name},
                            {"ir", distinct.ir},
                            {"grid", kernel.grid.str()},
                            {"block", kernel.block},
                            {"uses", distinct.uses},
                            {"shared_bytes", kernel.sharedBytes},
                            {"arguments", std::move(arguments)}};
  std::string text;
  llvm::raw_string_ostream out(text);
  out << llvm::formatv("{0:2}\n", llvm::json::Value(std::move(object)));
  return out.str();
}

} // namespace

std::vector<KernelFile> kernelFiles(const FunctionKernels &kernels) {
  std::vector<KernelFile> files;
  for (const DistinctKernel &distinct : kernels.kernels) {
    files.push_back({distinct.kernel.name + "/kernel.cu", distinct.kernel.source});
    files.push_back({distinct.kernel.name + "/kernel.json", json(distinct)});
  }
  return files;
}

} // namespace fusor::codegen
