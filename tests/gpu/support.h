// Programs of MiniGPT on the device, for tests and the profile.
#pragma once
#include "frontend/nn/modules.h"
#include "passes/pipeline.h"
#include "runtime/cuda/cuda_program.h"
#include "runtime/execute/program.h"

namespace fusor::tests {

/// Nothing, or why there is no device.
inline std::string whyNoGpu() { return runtime::probeCudaDriver().reason; }

inline ir::Target gpuTarget(ir::ArchTier limit = ir::ArchTier::sm90a) {
  return runtime::cudaTarget(runtime::probeCudaDriver().devices.front(), limit);
}

inline llvm::Expected<std::unique_ptr<runtime::Program>> trainingProgram(const nn::GptConfig &config,
                                                                         ir::DType precision, const ir::Target &target,
                                                                         runtime::CompileOptions options = {},
                                                                         bool fp8 = false) {
  auto module = nn::gptForward(config);
  passes::PassOptions passOptions;
  passOptions.precision = precision;
  passOptions.target = target;
  passOptions.optimizer.lr = 1e-3;
  if (fp8) passOptions.fp8.emplace();
  passOptions.target.hasCublasLt &= !options.ownGemm;
  passes::PassContext context(passOptions);
  if (auto error = passes::runPipeline(*module, passes::PipelineKind::train, context)) return error;
  auto program = runtime::compile(std::move(module), target, std::move(options));
  if (!program) return program.takeError();
  if (auto error = (*program)->initialize(7)) return error;
  return program;
}

/// A step on tokens that depend on `number` alone: the loss.
inline llvm::Expected<float> trainStep(runtime::Program &program, const nn::GptConfig &config, int64_t batch,
                                       int64_t number) {
  std::vector<int32_t> tokens(batch * config.context), targets(tokens.size());
  uint32_t state = static_cast<uint32_t>(number) * 2654435761u + 1;
  for (size_t i = 0; i < tokens.size(); ++i) {
    state = state * 1664525u + 1013904223u;
    tokens[i] = static_cast<int32_t>((state >> 8) % config.vocab);
    targets[i] = static_cast<int32_t>((tokens[i] * 5 + 3) % config.vocab);
  }
  float loss = 0;
  using runtime::TensorView;
  TensorView out{ir::DType::f32, {}, &loss};
  TensorView inputs[] = {{ir::DType::i32, {batch, config.context}, tokens.data()},
                         {ir::DType::i32, {batch, config.context}, targets.data()}};
  if (auto error = program.run("train_step", inputs, out)) return error;
  return loss;
}

} // namespace fusor::tests
