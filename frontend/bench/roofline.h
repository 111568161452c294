// The roofline is measured, not looked up: the best GEMM of a precision and the best copy this device does right now
// give the least time for a part's operations and bytes.
#pragma once
#include "frontend/api/device.h"
#include "ir/types/dtype.h"

namespace fusor::frontend::bench {

struct Roofline {
  double flopsPerMs = 0, bytesPerMs = 0;
  /// The part of the least possible time in `ms`.
  double share(double flops, double bytes, double ms) const {
    return std::max(flops / flopsPerMs, bytes / bytesPerMs) / ms;
  }
};

/// A GEMM of `precision`, f8e4m3 included (8192 a side on a GPU, 1024 on a CPU) and a copy of as many bytes, in `rounds` rounds.
llvm::Expected<Roofline> measureRoofline(ir::DType precision, DeviceSettings settings, const ChosenDevice &device,
                                         unsigned rounds);

} // namespace fusor::frontend::bench
