// One op of a compiled function on a GPU: generated kernels, a library GEMM (perhaps with a generated loop behind it),
// or, where no kernel class takes it, the reference on the host.
#pragma once
#include "codegen/emit/emit.h"
#include "runtime/cpu/reference_step.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/gemm_call.h"

namespace fusor::runtime {

struct DeviceCode {
  const ir::Op *op = nullptr;
  std::string name, kind; // "layer_norm_3"; "row", ..., "reference"
  codegen::KernelSet set;
  llvm::SmallVector<unsigned, 4> kernels;    // for each kernel of the set its number among the program's
  std::optional<GemmCall> gemm;              // runs before the kernels
  std::string whyHost;                       // empty: it runs on the device
  std::string whyOwn;                        // of a GEMM that is no library call, where calls are taken
  std::shared_ptr<const ReferenceBody> body; // on the host, and for checks
  llvm::SmallVector<ir::Value, 8> inputs;    // of the function, in the order of the kernels' inputs

  /// Generated kernels for sizes that the library has no product of; null where it has all.
  std::shared_ptr<const DeviceCode> own;

  /// `own`, or this.
  const DeviceCode &forSizes(const ir::SymbolValues &symbols) const;
  bool runsOnHost() const { return !whyHost.empty(); }
  /// Whether result `result` may be written over operand `operand` of the op.
  bool mayOverwrite(unsigned result, unsigned operand) const;
};

/// A program's kernels: equal ones are there once.
class DeviceKernels {
public:
  struct Kernel {
    codegen::Kernel code;
    std::string edited; // what runs in place of code.source; empty mostly
    CudaModule module;
    CudaFunctionHandle function = nullptr;
    std::string image; // kept for describe() where load() is asked to
  };
  /// `libraryGemm`: contractions may be calls of cuBLASLt.
  DeviceKernels(const ir::Target &target, bool libraryGemm) : target_(target), libraryGemm_(libraryGemm) {}

  /// By function, code for what must run of it: all but views, constants and the return.
  llvm::StringMap<std::vector<DeviceCode>> lower(const ir::Module &module);
  std::vector<Kernel> &kernels() { return kernels_; }
  /// Puts their images, in their order, on the device.
  llvm::Error load(const CudaContextRef &context, llvm::ArrayRef<std::string> images, bool keepsImages);

private:
  bool lowerToLibrary(const ir::Op &op, DeviceCode &code);
  unsigned numberOf(codegen::Kernel kernel, const std::string &canonical);
  const ir::Target &target_;
  bool libraryGemm_;
  std::vector<Kernel> kernels_;
  llvm::StringMap<unsigned> byText_;
};

} // namespace fusor::runtime
