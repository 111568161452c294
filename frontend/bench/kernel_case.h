// One kernel, or the few of one op, timed by themselves.
//
// A case says what is read, written and done; the module made of it has
//   @forward  `instances` times the same op on tensors of their own, so that no instance finds its inputs in a cache
//   @copy, @copy_kernel   as many copies of as many bytes, on buffers of their own, by the driver (cuMemcpyDtoD) and by
//                         a generated kernel (y = -x): the faster is the yardstick, measured in turn with @forward
// Both are compiled by the passes every module goes through, and run as one CUDA graph each.
#pragma once
#include "frontend/api/device.h"
#include "frontend/builder/builder.h"
#include "ir/types/dtype.h"
#include <functional>

namespace fusor::frontend::bench {

struct CaseTensor {
  std::string name;
  DType dtype = f32;
  std::vector<int64_t> shape;
  Init init = Init::constant(0.5);
};

struct KernelCase {
  std::string what, name, shape; // "norm", "layer_norm forward", "8192x768"
  ir::DType precision = ir::DType::f32;
  /// An output may have the name of an input of the same type: it is updated in place.
  std::vector<CaseTensor> inputs, outputs;
  /// The outputs, from the inputs in order.
  std::function<std::vector<Value>(Builder &, const std::vector<Value> &)> body;
  bool ownGemm = false; // generated GEMM kernels where cuBLASLt's would be taken

  double bytes() const; // of all inputs and outputs, each once
};

struct KernelTiming {
  double us = 0, minUs = 0, maxUs = 0; // of one instance: median, least, most of the rounds
  double copyUs = 0;                   // of the faster way to copy as many bytes as bytes(), median
  double bytes = 0, flops = 0;
  int64_t peakBytes = 0;
  unsigned instances = 0, launches = 0; // in a run; timed a round
  unsigned kernels = 0;                 // of one instance
};

/// `rounds` of at least `launches` instances each.
llvm::Expected<KernelTiming> timeKernel(const KernelCase &kernel, const DeviceSettings &settings,
                                        const ChosenDevice &device, unsigned rounds, unsigned launches);

} // namespace fusor::frontend::bench
