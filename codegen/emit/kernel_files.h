// Kernels as files: what `fusor emit` and a dump folder hold of each.
//
//   layer_norm__bf16_768/kernel.cu      the text
//   layer_norm__bf16_768/kernel.json    {"name", "ir", "grid", "block", "arguments", "uses"}
#pragma once
#include "codegen/emit/emit.h"
#include "llvm/Support/JSON.h"

namespace fusor::codegen {

struct KernelFile {
  std::string path; // relative to the folder of all kernels
  std::string text;
};

/// Two files for each kernel, in the order of `kernels`.
std::vector<KernelFile> kernelFiles(const FunctionKernels &kernels);

/// "input", "output", "workspace", "symbol", "table_pointers", ...
llvm::StringRef name(KernelArg::Kind kind);

/// Name, launch and parameters of one, as in its kernel.json; a dump adds what it knows of a run.
llvm::json::Object kernelJson(const Kernel &kernel);

} // namespace fusor::codegen
