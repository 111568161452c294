#include "runtime/cuda/describe_bucket.h"

namespace fusor::runtime {
namespace {

DescribedKernel describeKernel(const DeviceKernels::Kernel &kernel) {
  constexpr llvm::StringLiteral kElf("\x7f"
                                     "ELF"); // a cubin is one, PTX is text
  DescribedKernel described;
  described.code = kernel.code, described.edited = kernel.edited;
  (llvm::StringRef(kernel.image).startswith(kElf) ? described.cubin : described.ptx) = kernel.image;
  KernelResources resources = kernel.module.resources(kernel.function);
  described.registers = resources.registers;
  described.spillBytes = resources.localBytes;
  described.staticSharedBytes = resources.staticSharedBytes;
  return described;
}

} // namespace

Description describeBucket(const ir::Function &function, const DeviceBucket &bucket,
                           llvm::ArrayRef<DeviceKernels::Kernel> kernels) {
  Description described;
  described.function = &function, described.symbols = bucket.symbols, described.memory = bucket.memory;
  llvm::DenseMap<unsigned, unsigned> numberOf; // by number among the program's kernels
  auto number = [&](unsigned kernel) {
    auto [it, isNew] = numberOf.try_emplace(kernel, described.kernels.size());
    if (isNew) described.kernels.push_back(describeKernel(kernels[kernel]));
    return it->second;
  };
  for (const DeviceBucket::Step &step : bucket.steps) {
    DescribedStep &entry = described.steps.emplace_back();
    const DeviceCode &code = *step.code;
    entry.op = code.op, entry.name = code.name, entry.kind = code.kind, entry.set = code.set;
    entry.inputs.assign(code.inputs.begin(), code.inputs.end());
    for (unsigned kernel : code.kernels) entry.kernels.push_back(number(kernel));
    entry.fallback = code.whyHost;
    entry.bytes = step.bytes, entry.flops = step.flops;
  }
  for (const DeviceLaunch &launch : bucket.launches) {
    DescribedLaunch &entry = described.launches.emplace_back();
    entry.step = launch.step, entry.name = launch.name;
    static_assert(DescribedLaunch::kBehindAllSteps == DeviceLaunch::kBehindAllSteps);
    switch (launch.kind) {
    case DeviceLaunch::Kind::kernel:
      entry.kernel = numberOf[launch.kernel];
      entry.grid = launch.shape.grid;
      break;
    case DeviceLaunch::Kind::gemm:
      entry.kind = DescribedLaunch::Kind::library;
      described.steps[launch.step].algorithm = "cuBLASLt: " + bucket.gemms[launch.gemm].text();
      break;
    case DeviceLaunch::Kind::copy:
      entry.kind = DescribedLaunch::Kind::copy;
      entry.bytes = launch.bytes;
      break;
    case DeviceLaunch::Kind::host: entry.kind = DescribedLaunch::Kind::host; break;
    }
  }
  return described;
}

} // namespace fusor::runtime
