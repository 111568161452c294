#include "frontend/bench/kernel_case.h"
#include "frontend/api/compile_module.h"
#include "frontend/bench/median.h"
#include "frontend/builder/graph_state.h"
#include "ir/ops/flops.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <numeric>

namespace fusor::frontend::bench {
namespace {

constexpr double kTogetherBytes = 1 << 30; // what instances touch before the first one's turn again: far over any cache
constexpr unsigned kMostInstances = 24;

double bytesOf(const CaseTensor &t) {
  return static_cast<double>(std::accumulate(t.shape.begin(), t.shape.end(), int64_t(1), std::multiplies<>())) *
         ir::byteSize(toIr(t.dtype));
}

Shape dimsOf(const CaseTensor &t) { return Shape(t.shape.begin(), t.shape.end()); }

llvm::Expected<std::unique_ptr<ir::Module>> moduleOf(const KernelCase &kernel, unsigned instances) {
  Builder b(kernel.what);
  auto copyElements = static_cast<int64_t>(llvm::alignTo(static_cast<uint64_t>(kernel.bytes()) / 8 + 1, 1024)); // f32
  for (unsigned i = 0; i < instances; ++i) {
    auto named = [&](const std::string &name) { return llvm::formatv("{0}.{1}", name, i).str(); };
    std::vector<Value> inputs;
    for (const CaseTensor &t : kernel.inputs) inputs.push_back(b.state(named(t.name), t.dtype, dimsOf(t), t.init));
    std::vector<Value> results = kernel.body(b, inputs);
    for (unsigned o = 0; o < results.size(); ++o) {
      const CaseTensor &t = kernel.outputs[o];
      if (llvm::none_of(kernel.inputs, [&](const CaseTensor &input) { return input.name == t.name; }))
        b.state(named(t.name), t.dtype, dimsOf(t));
      b.update(named(t.name), results[o]);
    }
  }
  b.function("copy");
  for (unsigned i = 0; i < instances; ++i) {
    std::string to = llvm::formatv("copy.to.{0}", i);
    b.state(to, f32, {copyElements});
    b.update(to, b.state(llvm::formatv("copy.from.{0}", i), f32, {copyElements}));
  }
  b.function("copy_kernel");
  for (unsigned i = 0; i < instances; ++i)
    b.update(llvm::formatv("copy.to.{0}", i), b.op("neg", {b.read(llvm::formatv("copy.from.{0}", i))}));
  return finish(b);
}

} // namespace

double KernelCase::bytes() const {
  double sum = 0;
  for (const auto *tensors : {&inputs, &outputs})
    for (const CaseTensor &t : *tensors) sum += bytesOf(t);
  return sum;
}

llvm::Expected<KernelTiming> timeKernel(const KernelCase &kernel, const DeviceSettings &settings,
                                        const ChosenDevice &device, unsigned rounds, unsigned launches) {
  KernelTiming timing;
  timing.bytes = kernel.bytes();
  bool isGpu = device.target.kind == ir::DeviceKind::cuda;
  double fit = (isGpu ? kTogetherBytes : kTogetherBytes / 16) / timing.bytes;
  timing.instances = static_cast<unsigned>(std::clamp(std::ceil(fit), 1.0, double(std::min(kMostInstances, launches))));
  auto runs = static_cast<unsigned>(llvm::divideCeil(launches, timing.instances));
  timing.launches = runs * timing.instances;
  auto module = moduleOf(kernel, timing.instances);
  if (!module) return module.takeError();
  CompileRequest request(settings);
  request.program.ownGemm |= kernel.ownGemm;
  auto compiled = compileModule(std::move(*module), device, std::move(request));
  if (!compiled) return compiled.takeError();
  runtime::Program &program = *compiled->program;
  if (auto error = program.initialize(0)) return error;
  timing.flops = ir::contractionFlops(*program.module().function("forward"), {}) / timing.instances;
  std::vector<double> times, copies, kernelCopies;
  for (unsigned round = 0; round < rounds; ++round)
    for (auto [function, into] : {std::pair{"forward", &times}, {"copy", &copies}, {"copy_kernel", &kernelCopies}}) {
      auto ms = program.timeRuns(function, {}, runs);
      if (!ms) return ms.takeError();
      into->push_back(1000 * *ms / timing.instances);
      if (into == &times) timing.kernels = program.kernelsPerRun() / timing.instances;
    }
  timing.us = medianOf(times), timing.copyUs = std::min(medianOf(copies), medianOf(kernelCopies));
  timing.minUs = *std::min_element(times.begin(), times.end());
  timing.maxUs = *std::max_element(times.begin(), times.end());
  timing.peakBytes = program.peakBytes();
  return timing;
}

} // namespace fusor::frontend::bench
