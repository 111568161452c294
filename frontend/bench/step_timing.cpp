#include "frontend/bench/step_timing.h"
#include "frontend/api/compile_module.h"
#include "frontend/api/tensor_files.h"
#include "frontend/bench/median.h"
#include "ir/ops/flops.h"
#include <chrono>

namespace fusor::frontend::bench {
namespace {

using Clock = std::chrono::steady_clock;
double msSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Numbers in [-1, 1], or small whole ones, that depend on their place alone.
HostTensor filled(const ir::TensorType &type, const ir::SymbolValues &symbols) {
  HostTensor tensor{type.dtype, {}, {}};
  for (const ir::Dim &d : type.shape) tensor.shape.push_back(*d.evaluate(symbols));
  tensor.bytes.resize(tensor.view().bytes());
  for (int64_t i = 0, n = tensor.elements(); i < n; ++i) {
    double value =
        ir::isInteger(type.dtype) ? static_cast<double>(i % 7) : static_cast<double>(i * 37 % 255 - 127) / 128;
    ir::storeElement(type.dtype, tensor.bytes.data(), i, value);
  }
  return tensor;
}

} // namespace

llvm::Expected<StepTiming> timeSteps(StepCase step, const DeviceSettings &settings, const ChosenDevice &device,
                                     uint64_t seed, int64_t warmup, int64_t iterations, bool profile) {
  CompileRequest request(settings);
  request.pipeline = step.isTraining ? passes::PipelineKind::train : passes::PipelineKind::infer;
  request.passes.precision = step.precision;
  auto compiled = compileModule(std::move(step.module), device, std::move(request));
  if (!compiled) return compiled.takeError();
  runtime::Program &program = *compiled->program;
  if (auto error = program.initialize(seed)) return error;
  const char *name = step.isTraining ? "train_step" : "forward";
  const ir::Function &function = *program.module().function(name);
  std::vector<HostTensor> inputs, outputs;
  std::vector<runtime::TensorView> inputViews, outputViews;
  for (ir::Value argument : function.block().arguments()) inputs.push_back(filled(argument.type(), step.symbols));
  for (HostTensor &t : inputs) inputViews.push_back(t.view());
  auto types = program.resultTypes(name, step.symbols);
  if (!types) return types.takeError();
  for (const runtime::TensorView &type : *types)
    outputs.push_back({type.dtype, type.shape, std::vector<char>(type.bytes())});
  for (HostTensor &t : outputs) outputViews.push_back(t.view());

  std::vector<double> times, host;
  std::optional<unsigned> unread;
  Clock::time_point since;
  auto finish = [&](int64_t number) -> llvm::Error {
    if (auto error = program.finish(*unread, outputViews)) return error;
    unread.reset();
    if (number > warmup) times.push_back(msSince(since)); // the end of step `warmup` is where time begins
    since = Clock::now();
    return llvm::Error::success();
  };
  if (warmup == 0) since = Clock::now();
  for (int64_t number = 1; number <= warmup + iterations; ++number) {
    auto begin = Clock::now();
    auto run = program.start(name, inputViews);
    if (!run) return run.takeError();
    if (number > warmup && program.isDeferred()) host.push_back(1000 * msSince(begin));
    if (unread)
      if (auto error = finish(number - 1)) return error;
    unread = *run;
    if (!program.isDeferred())
      if (auto error = finish(number)) return error;
  }
  if (unread)
    if (auto error = finish(warmup + iterations)) return error;

  StepTiming timing;
  timing.ms = medianOf(times), timing.hostUs = medianOf(host), timing.compileMs = compiled->compileMs;
  timing.minMs = *std::min_element(times.begin(), times.end());
  timing.maxMs = *std::max_element(times.begin(), times.end());
  timing.flops = ir::contractionFlops(function, step.symbols);
  for (const runtime::KernelInfo &kernel : program.kernels())
    if (kernel.function == name) timing.bytes += static_cast<double>(kernel.bytes);
  timing.peakBytes = program.peakBytes(), timing.compiled = program.compileStats().compiled;
  timing.launches = program.launchesPerRun(), timing.kernels = program.kernelsPerRun();
  timing.notes = program.compileStats().notes;
  if (!profile) return timing;
  program.setProfiling(true);
  constexpr int kBefore = 2; // the first makes the graph with its events
  for (int i = 0; i <= kBefore; ++i)
    if (auto error = program.run(name, inputViews, outputViews)) return error;
  timing.profile = program.stepTimes();
  return timing;
}

} // namespace fusor::frontend::bench
