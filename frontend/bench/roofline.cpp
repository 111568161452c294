#include "frontend/bench/roofline.h"
#include "frontend/bench/cases.h"

namespace fusor::frontend::bench {

llvm::Expected<Roofline> measureRoofline(ir::DType precision, DeviceSettings settings, const ChosenDevice &device,
                                         unsigned rounds) {
  bool isGpu = device.target.kind == ir::DeviceKind::cuda;
  int64_t n = isGpu ? 8192 : 1024;
  settings.dumpDir.clear(), settings.check = false;
  auto product = gemmCases(precision, GemmDims{"", n, n, n}, device, false);
  auto timing = timeKernel(product.front(), settings, device, rounds, isGpu ? 4 : 2);
  if (!timing) return timing.takeError();
  return Roofline{1000 * timing->flops / timing->minUs, 1000 * timing->bytes / timing->copyUs};
}

} // namespace fusor::frontend::bench
