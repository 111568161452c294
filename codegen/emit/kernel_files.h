// Kernels as files: what `fusor emit` and a dump folder hold of each.
//
//   layer_norm__bf16_768/kernel.cu      the text
//   layer_norm__bf16_768/kernel.json    {"name", "ir", "grid", "block", "arguments", "uses"}
#pragma once
#include "codegen/emit/emit.h"

namespace fusor::codegen {

struct KernelFile {
  std::string path; // relative to the folder of all kernels
  std::string text;
};

/// Two files for each kernel, in the order of `kernels`.
std::vector<KernelFile> kernelFiles(const FunctionKernels &kernels);

} // namespace fusor::codegen
