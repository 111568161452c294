#include "frontend/bench/step_timing.h"
#include "frontend/api/compile_module.h"
#include "frontend/api/data.h"
#include "frontend/api/tensor_files.h"
#include "frontend/bench/loop_timing.h"
#include "frontend/bench/median.h"
#include "frontend/dump/dump.h"
#include "ir/ops/flops.h"
#include "llvm/ADT/STLExtras.h"
#include <cstring>

namespace fusor::frontend::bench {
namespace {

HostTensor zeros(const ir::TensorType &type, const ir::SymbolValues &symbols) {
  HostTensor tensor{type.dtype, {}, {}};
  for (const ir::Dim &d : type.shape) tensor.shape.push_back(*d.evaluate(symbols));
  tensor.bytes.resize(tensor.view().bytes());
  return tensor;
}

/// tokens and targets [rows, context] of the synthetic data, as in training; a function without targets leaves them.
void fillTokens(std::vector<HostTensor> &inputs, int64_t vocab, uint64_t seed) {
  int64_t rows = inputs[0].shape[0], context = inputs[0].shape[1];
  std::vector<int32_t> tokens(rows * context), targets(tokens.size());
  fillBatch(*syntheticData(seed, vocab), 0, rows, context, tokens, targets);
  const std::vector<int32_t> *from[] = {&tokens, &targets};
  for (size_t i = 0; i < std::min<size_t>(inputs.size(), 2); ++i)
    std::memcpy(inputs[i].bytes.data(), from[i]->data(), inputs[i].bytes.size());
}

} // namespace

llvm::Expected<StepTiming> timeSteps(StepCase step, const DeviceSettings &settings, const ChosenDevice &device,
                                     uint64_t seed, int64_t warmup, int64_t iterations, bool profile) {
  CompileRequest request(settings);
  request.pipeline = step.isTraining ? passes::PipelineKind::train : passes::PipelineKind::infer;
  request.passes.precision = step.precision;
  if (step.fp8) request.passes.fp8.emplace();
  auto compiled = compileModule(std::move(step.module), device, std::move(request));
  if (!compiled) return compiled.takeError();
  runtime::Program &program = *compiled->program;
  if (auto error = program.initialize(seed)) return error;
  const char *name = step.isTraining ? "train_step" : "forward";
  const ir::Function &function = *program.module().function(name);
  std::vector<HostTensor> inputs, outputs;
  std::vector<runtime::TensorView> inputViews, outputViews;
  for (ir::Value argument : function.block().arguments()) inputs.push_back(zeros(argument.type(), step.symbols));
  fillTokens(inputs, step.vocab, seed);
  for (HostTensor &t : inputs) inputViews.push_back(t.view());
  auto types = program.resultTypes(name, step.symbols);
  if (!types) return types.takeError();
  for (const runtime::TensorView &type : *types)
    outputs.push_back({type.dtype, type.shape, std::vector<char>(type.bytes())});
  for (HostTensor &t : outputs) outputViews.push_back(t.view());

  auto times = timeLoop(program, name, inputViews, outputViews, warmup, iterations);
  if (!times) return times.takeError();
  StepTiming timing;
  timing.ms = medianOf(times->ms), timing.hostUs = meanOf(times->hostUs), timing.compileMs = compiled->compileMs;
  timing.minMs = *std::min_element(times->ms.begin(), times->ms.end());
  timing.maxMs = *std::max_element(times->ms.begin(), times->ms.end());
  timing.flops = ir::contractionFlops(function, step.symbols);
  for (const runtime::KernelInfo &kernel : program.kernels())
    if (kernel.function == name) timing.bytes += static_cast<double>(kernel.bytes);
  timing.peakBytes = program.peakBytes(), timing.compiled = program.compileStats().compiled;
  timing.launches = program.launchesPerRun(), timing.kernels = program.kernelsPerRun();
  timing.notes = program.compileStats().notes;
  for (const runtime::Fallback &fallback : program.fallbacks())
    timing.fallbacks.push_back(fallback.where + ": " + fallback.reason);
  if (profile) {
    auto measured = profileStep(program, settings, device, name, inputViews, outputViews);
    if (!measured) return measured.takeError();
    timing.profile = std::move(*measured);
  }
  if (step.dump)
    if (auto error = dumpRun(*step.dump, *compiled, device, settings,
                             {.verb = "bench",
                              .config = step.config,
                              .precision = step.fp8 ? "fp8" : ir::name(step.precision).str(),
                              .function = name,
                              .inputs = inputViews,
                              .outputs = outputViews,
                              .stepMs = timing.ms,
                              .profile = timing.profile}))
      return error;
  return timing;
}

} // namespace fusor::frontend::bench
