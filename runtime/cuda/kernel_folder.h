// Writes the kernels of a module into a folder, with cubins where an NVRTC is found: `fusor emit`. Needs no GPU.
//
//   auto report = writeKernelFolder(*fused, {"sm_75", "sm_90a"}, "out");
//     out/layer_norm__bf16_768/{kernel.cu, kernel.json, sm_75.cubin, sm_90a.cubin}
#pragma once
#include "codegen/emit/emit.h"
#include "llvm/ADT/ArrayRef.h"

namespace fusor::runtime {

struct KernelFolderReport {
  struct Refused {
    std::string ops, reason; // the fusion's ops; why no kernel class takes them
  };
  unsigned kernels = 0, launches = 0, cubins = 0;
  std::vector<Refused> refused;
  std::string compiler;             // "NVRTC 13.0, /usr/...", or why there is none
  std::vector<std::string> skipped; // architectures this NVRTC does not know
};

/// `module` has been through passes/fusion. Errors: the folder cannot be written, or NVRTC refuses a kernel.
llvm::Expected<KernelFolderReport> writeKernelFolder(const ir::Module &module, llvm::ArrayRef<std::string> archs,
                                                     llvm::StringRef folder);

} // namespace fusor::runtime
