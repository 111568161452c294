// fusor bench: time a training step, or one kind of kernel, on this device.
// `roofline` is the least time of its operations and bytes, see bench/roofline.h, over the time it took.
#include "frontend/api/config_file.h"
#include "frontend/bench/cases.h"
#include "frontend/bench/roofline.h"
#include "frontend/bench/step_timing.h"
#include "frontend/builder/graph_state.h"
#include "frontend/cli/console.h"
#include "frontend/cli/load_module.h"
#include "frontend/cli/profile_table.h"
#include "frontend/cli/verbs.h"
#include "frontend/dump/dump.h"
#include "frontend/nn/modules.h"

namespace fusor::frontend::cli {
namespace {

using bench::AttentionDims, bench::GemmDims, bench::KernelCase, bench::Roofline, bench::RowShape, bench::StepCase;

/// How often, and on what.
struct Bench {
  Console &console;
  const CommonOptions &common;
  const BenchOptions &options;
  ChosenDevice device;
  bool isGpu = false;
  unsigned rounds = 0, launches = 0; // of kernels

  llvm::Error kernels(llvm::ArrayRef<KernelCase> cases, const Roofline &roofline) const;
  llvm::Error step(Precision precision, const Roofline &roofline) const;
  std::vector<KernelCase> cases(ir::DType precision) const;
};

llvm::Error Bench::kernels(llvm::ArrayRef<KernelCase> cases, const Roofline &roofline) const {
  console.say("        us   (least to most)      GB/s  TFLOP/s  of a copy  kernel");
  for (const KernelCase &kernel : cases) {
    auto timing = bench::timeKernel(kernel, deviceSettings(common), device, rounds, launches);
    if (!timing) return timing.takeError();
    const bench::KernelTiming &t = *timing;
    double ms = t.us / 1000, gbPerS = t.bytes / t.us / 1000, tflops = t.flops / t.us / 1e6;
    const char *blas = kernel.what != "gemm"                    ? ""
                       : !isGpu                                 ? "cpu"
                       : kernel.ownGemm || common.blas == "own" ? "own"
                                                                : "cublaslt";
    console.object({{"what", kernel.what},
                    {"name", kernel.name},
                    {"shape", kernel.shape},
                    {"precision", ir::name(kernel.precision)},
                    {"device", device.name},
                    {"blas", *blas ? llvm::json::Value(blas) : llvm::json::Value(nullptr)},
                    {"us", t.us},
                    {"ms", ms},
                    {"ms_min", t.minUs / 1000},
                    {"ms_max", t.maxUs / 1000},
                    {"bytes", t.bytes},
                    {"gb_per_s", gbPerS},
                    {"tflops", tflops},
                    {"copy_us", t.copyUs},
                    {"copy_ratio", t.copyUs / t.us},
                    {"roofline", roofline.share(t.flops, t.bytes, ms)},
                    {"peak_bytes", t.peakBytes},
                    {"kernels", t.kernels},
                    {"launches", t.launches}});
    console.result(llvm::formatv("{0,10:f1} ({1:f1} to {2:f1})  {3,8:f0} {4,8:f1} {5,8:f1} %   {6} {7} {8} {9}", t.us,
                                 t.minUs, t.maxUs, gbPerS, tflops, 100 * t.copyUs / t.us, kernel.name, kernel.shape,
                                 ir::name(kernel.precision), blas)
                       .str());
  }
  return llvm::Error::success();
}

llvm::Error Bench::step(Precision precision, const Roofline &roofline) const {
  auto config = loadConfig(options.config);
  if (!config) return config.takeError();
  DeviceSettings settings = deviceSettings(common);
  auto dump = beginDump(settings);
  if (!dump) return dump.takeError();
  StepCase step{.module = nullptr,
                .isTraining = options.what == "train",
                .precision = precision.dtype,
                .fp8 = precision.fp8,
                .config = options.config,
                .dump = *dump ? &**dump : nullptr};
  const std::string named = precision.fp8 ? "fp8" : ir::name(precision.dtype).str();
  step.symbols["B"] = options.batch, step.vocab = config->vocab;
  int64_t most = std::max<int64_t>(options.batch, 4096);
  if (step.isTraining) {
    step.module = nn::gptForward(*config, "minigpt", most);
  } else {
    Builder b("minigpt");
    b.output(nn::gpt(b, b.input("tokens", i32, {dim("B", 1, most), config->context}), *config), "logits");
    auto module = finish(b);
    if (!module) return module.takeError();
    step.module = std::move(*module);
  }
  auto timing = bench::timeSteps(std::move(step), settings, device, common.seed, options.warmup, options.iterations,
                                 options.profile);
  if (!timing) return timing.takeError();
  if (*dump)
    if (auto error = finishDump(**dump)) return error;
  const bench::StepTiming &t = *timing;
  for (const std::string &note : t.notes) console.note(note);
  for (const std::string &fallback : t.fallbacks) console.warning("fallback: " + fallback);
  double tflops = t.flops / t.ms / 1e9, share = roofline.share(t.flops, t.bytes, t.ms);
  if (t.profile) showProfile(console, *t.profile, t.ms);
  console.object({{"what", options.what},
                  {"config", options.config},
                  {"batch", options.batch},
                  {"precision", named},
                  {"device", device.name},
                  {"ms", t.ms},
                  {"ms_min", t.minMs},
                  {"ms_max", t.maxMs},
                  {"host_us_per_step", t.hostUs},
                  {"launches_per_step", t.launches},
                  {"kernels", t.kernels},
                  {"compiled", t.compiled},
                  {"compile_ms", t.compileMs},
                  {"peak_bytes", t.peakBytes},
                  {"tflops", tflops},
                  {"roofline", share}});
  console.result(llvm::formatv("{0} {1} {2}: {3:f3} ms ({4:f3} to {5:f3}), {6} kernels in {7} launches, {8:f1} us of "
                               "the host, peak {9}, {10:f4} TFLOP/s, {11:f0} % of the roofline",
                               options.what, options.config, named, t.ms, t.minMs, t.maxMs, t.kernels, t.launches,
                               t.hostUs, bytesText(t.peakBytes), tflops, 100 * share)
                     .str());
  return llvm::Error::success();
}

/// What was written on the command line, else what the device has time for.
std::vector<KernelCase> Bench::cases(ir::DType precision) const {
  const BenchOptions &o = options;
  RowShape rows{o.rows.value_or(isGpu ? 8192 : 1024), o.columns.value_or(768)};
  if (o.what == "quantize") return bench::quantizeCases(rows);
  if (o.what == "norm")
    return bench::normCases(precision, isGpu && !o.rows && !o.columns ? llvm::ArrayRef<RowShape>() : rows);
  if (o.what == "gemm") {
    if (isGpu && !o.m && !o.n && !o.k) return bench::gemmCases(precision, bench::modelGemms(), device, true);
    int64_t usual = isGpu ? 2048 : 1024;
    return bench::gemmCases(precision, GemmDims{"", o.m.value_or(usual), o.n.value_or(usual), o.k.value_or(usual)},
                            device, false);
  }
  if (isGpu && !o.heads && !o.sequence && !o.headSize)
    return bench::attentionCases(precision, bench::modelAttentions());
  return bench::attentionCases(precision, AttentionDims{.batch = o.batch,
                                                        .heads = o.heads.value_or(12),
                                                        .kvHeads = o.kvHeads,
                                                        .sequence = o.sequence.value_or(256),
                                                        .headSize = o.headSize.value_or(64),
                                                        .window = o.window,
                                                        .causal = o.causal});
}

llvm::Error benchAll(Console &console, const CommonOptions &common, const BenchOptions &o) {
  auto device = chooseDevice(common.device, deviceSettings(common).tier);
  if (!device) return device.takeError();
  if (o.kvHeads > 0 && o.heads.value_or(12) % o.kvHeads)
    return failure(ErrorKind::usage, "--kv-heads {0} must divide --heads {1}", o.kvHeads, o.heads.value_or(12));
  Bench run{console, common, o, *device, device->target.kind == ir::DeviceKind::cuda};
  constexpr unsigned kGpuRounds = 7, kCpuRounds = 3, kLeastOnGpu = 20, kMostOnCpu = 5;
  run.rounds = run.isGpu ? kGpuRounds : kCpuRounds;
  auto launches = static_cast<unsigned>(std::min<int64_t>(o.iterations, 1000));
  run.launches = run.isGpu ? std::max(launches, kLeastOnGpu) : std::min(launches, kMostOnCpu);
  bool isStep = o.what == "train" || o.what == "infer";
  if (!common.dump.empty() && (!isStep || o.precisions.size() > 1))
    return failure(ErrorKind::usage, "--dump is of one program: bench train or infer, with one --precision");
  std::vector<Precision> precisions;
  for (const std::string &text : o.precisions.empty() ? std::vector<std::string>{"bf16"} : o.precisions) {
    auto precision = parsePrecision(text);
    if (!precision) return precision.takeError();
    if (precision->fp8 && !isStep)
      return failure(ErrorKind::usage, "bench {0} --precision fp8 is not available yet: bench train is", o.what);
    precisions.push_back(*precision);
  }
  for (Precision precision : precisions) {
    auto roofline = bench::measureRoofline(precision.dtype, deviceSettings(common), *device, run.rounds);
    if (!roofline) return roofline.takeError();
    console.say(llvm::formatv("{0}: {1:f1} GFLOP/s in a {2} GEMM, {3:f1} GB/s", device->name,
                              roofline->flopsPerMs / 1e6, ir::name(precision.dtype), roofline->bytesPerMs / 1e6)
                    .str());
    if (auto error = isStep ? run.step(precision, *roofline) : run.kernels(run.cases(precision.dtype), *roofline))
      return error;
  }
  return llvm::Error::success();
}

} // namespace

int bench(const CommonOptions &common, const BenchOptions &options) {
  Console console(common);
  return console.fail(benchAll(console, common, options));
}

} // namespace fusor::frontend::cli
