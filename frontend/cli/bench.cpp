// fusor bench: time a training step, or one part, on this device.
//
// The roofline is measured, not looked up: the best f32 GEMM and the best copy this device does right now give the
// least time for a part's operations and bytes; `roofline` is that time over the time it took.
#include "frontend/api/compile_module.h"
#include "frontend/api/config_file.h"
#include "frontend/api/tensor_files.h"
#include "frontend/builder/graph_state.h"
#include "frontend/cli/console.h"
#include "frontend/cli/load_module.h"
#include "frontend/cli/verbs.h"
#include "ir/graph/bug.h"
#include "ir/ops/flops.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::frontend::cli {
namespace {

/// A module, the function of it to time, and how to call it.
struct Job {
  std::string what, shape; // as printed: "gemm", "m=2048 n=2048 k=2048"
  std::unique_ptr<ir::Module> module;
  passes::PipelineKind pipeline = passes::PipelineKind::infer;
  std::string function = "forward";
  ir::SymbolValues symbols = {};
};

struct Timing {
  double ms = 0, minMs = 0, maxMs = 0; // median, least, most
  double flops = 0, bytes = 0;
  int64_t peakBytes = 0;
};

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

llvm::Expected<Timing> timeJob(Job job, const CommonOptions &common, const ChosenDevice &device, ir::DType precision,
                               int64_t warmup, int64_t iterations) {
  CompileRequest request(deviceSettings(common));
  request.pipeline = job.pipeline;
  request.passes.precision = precision;
  auto compiled = compileModule(std::move(job.module), device, std::move(request));
  if (!compiled) return compiled.takeError();
  runtime::Program &program = *compiled->program;
  if (auto error = program.initialize(common.seed)) return error;
  const ir::Function &function = *program.module().function(job.function);
  std::vector<HostTensor> inputs, outputs;
  std::vector<runtime::TensorView> inputViews, outputViews;
  for (ir::Value argument : function.block().arguments()) inputs.push_back(filled(argument.type(), job.symbols));
  for (HostTensor &t : inputs) inputViews.push_back(t.view());
  auto types = program.resultTypes(job.function, job.symbols);
  if (!types) return types.takeError();
  for (const runtime::TensorView &type : *types)
    outputs.push_back({type.dtype, type.shape, std::vector<char>(type.bytes())});
  for (HostTensor &t : outputs) outputViews.push_back(t.view());

  std::vector<double> times;
  for (int64_t i = 0; i < warmup + iterations; ++i) {
    Stopwatch watch;
    if (auto error = program.run(job.function, inputViews, outputViews)) return error;
    if (i >= warmup) times.push_back(watch.ms());
  }
  llvm::sort(times);
  Timing timing{.ms = times[times.size() / 2], .minMs = times.front(), .maxMs = times.back()};
  timing.flops = ir::contractionFlops(function, job.symbols);
  for (const runtime::KernelInfo &kernel : program.kernels())
    if (kernel.function == job.function) timing.bytes += static_cast<double>(kernel.bytes);
  timing.peakBytes = program.peakBytes();
  return timing;
}

/// A module of one small graph; `build` adds it to @forward.
template <typename Build> std::unique_ptr<ir::Module> moduleOf(llvm::StringRef name, Build build) {
  Builder b(name.str());
  build(b);
  auto module = finish(b);
  if (!module) FUSOR_BUG("bench builds a wrong graph: {0}", llvm::toString(module.takeError()));
  return std::move(*module);
}

Job gemm(int64_t m, int64_t n, int64_t k) {
  return {"gemm", llvm::formatv("m={0} n={1} k={2}", m, n, k), moduleOf("gemm", [&](Builder &b) {
            b.output(linear(b.input("x", f32, {m, k}), b.param("weight", f32, {n, k}, Init::normal(0.02))));
          })};
}

Job norm(int64_t rows, int64_t columns) {
  return {"norm", llvm::formatv("rows={0} columns={1}", rows, columns), moduleOf("norm", [&](Builder &b) {
            nn::LayerNorm ln(b, "ln", columns);
            b.output(ln(b.input("x", f32, {rows, columns})));
          })};
}

Job quantize(int64_t rows, int64_t columns) {
  return {"quantize", llvm::formatv("rows={0} columns={1}", rows, columns), moduleOf("quantize", [&](Builder &b) {
            Value scale = b.state("x.scale", f32, {}, Init::constant(1));
            auto q = b.ops("quantize", {b.input("x", f32, {rows, columns}), scale});
            b.output(b.op("dequantize", {q[0]}));
          })};
}

Job attentionJob(const BenchOptions &o) {
  int64_t kv = o.kvHeads ? o.kvHeads : o.heads;
  auto shape = llvm::formatv("batch={0} heads={1} kv_heads={2} seq={3} head_size={4} causal={5} window={6}", o.batch,
                             o.heads, kv, o.sequence, o.headSize, o.causal, o.window);
  return {"attention", shape, moduleOf("attention", [&](Builder &b) {
            Value q = b.input("q", f32, {o.batch, o.sequence, o.heads * o.headSize});
            Value k = b.input("k", f32, {o.batch, o.sequence, kv * o.headSize});
            Value v = b.input("v", f32, {o.batch, o.sequence, kv * o.headSize});
            b.output(
                attention(q, k, v, {.heads = o.heads, .kvHeads = o.kvHeads, .causal = o.causal, .window = o.window}));
          })};
}

llvm::Expected<Job> makeJob(const BenchOptions &o) {
  if (o.what == "gemm") return gemm(o.m, o.n, o.k);
  if (o.what == "norm") return norm(o.rows, o.columns);
  if (o.what == "quantize") return quantize(o.rows, o.columns);
  if (o.what == "attention") {
    if (o.kvHeads > 0 && o.heads % o.kvHeads)
      return failure(ErrorKind::usage, "--kv-heads {0} must divide --heads {1}", o.kvHeads, o.heads);
    return attentionJob(o);
  }
  auto config = loadConfig(o.config);
  if (!config) return config.takeError();
  Job job{o.what, o.config, nullptr};
  job.symbols["B"] = o.batch;
  if (o.what == "train") {
    job.module = nn::gptForward(*config, "minigpt", std::max<int64_t>(o.batch, 4096));
    job.pipeline = passes::PipelineKind::train, job.function = "train_step";
    return job;
  }
  job.module = moduleOf("minigpt", [&](Builder &b) {
    Value tokens = b.input("tokens", i32, {dim("B", 1, std::max<int64_t>(o.batch, 4096)), config->context});
    b.output(nn::gpt(b, tokens, *config), "logits");
  });
  return job;
}

struct Roofline {
  double flopsPerMs = 0, bytesPerMs = 0;
  /// The part of the least possible time in `timing`.
  double share(const Timing &timing) const {
    return std::max(timing.flops / flopsPerMs, timing.bytes / bytesPerMs) / timing.ms;
  }
};
llvm::Expected<Roofline> measureRoofline(const CommonOptions &common, const ChosenDevice &device) {
  CommonOptions quiet = common;
  quiet.dump.clear();
  auto product = timeJob(gemm(1024, 1024, 1024), quiet, device, ir::DType::f32, 1, 5);
  if (!product) return product.takeError();
  constexpr int64_t kElements = 1 << 22; // larger than caches: 16 MiB in, 16 MiB out
  auto copied =
      timeJob({"copy", "", moduleOf("copy", [&](Builder &b) { b.output(b.input("x", f32, {kElements}) * 2.0); })},
              quiet, device, ir::DType::f32, 1, 5);
  if (!copied) return copied.takeError();
  return Roofline{product->flops / product->minMs, 2.0 * 4 * kElements / copied->minMs};
}

llvm::Error benchAll(Console &console, const CommonOptions &common, const BenchOptions &o) {
  auto device = chooseDevice(common.device, deviceSettings(common).tier);
  if (!device) return device.takeError();
  if (!device->note.empty()) console.note(device->note);
  std::vector<std::string> precisions = o.precisions;
  if (precisions.empty()) precisions = {"bf16"};
  std::vector<ir::DType> dtypes;
  for (const std::string &text : precisions) {
    auto precision = parsePrecision(text);
    if (!precision) return precision.takeError();
    dtypes.push_back(*precision);
  }
  auto roofline = measureRoofline(common, *device);
  if (!roofline) return roofline.takeError();
  console.say(llvm::formatv("{0}: {1:f1} GFLOP/s in an f32 GEMM, {2:f1} GB/s", device->name, roofline->flopsPerMs / 1e6,
                            roofline->bytesPerMs / 1e6)
                  .str());
  for (ir::DType precision : dtypes) {
    auto job = makeJob(o);
    if (!job) return job.takeError();
    std::string what = job->what, shape = job->shape;
    auto timing = timeJob(std::move(*job), common, *device, precision, o.warmup, o.iterations);
    if (!timing) return timing.takeError();
    double tflops = timing->flops / timing->ms / 1e9, share = roofline->share(*timing);
    bool isModel = o.what == "train" || o.what == "infer";
    console.object({{"what", what},
                    {isModel ? "config" : "shape", shape},
                    {"batch", isModel ? llvm::json::Value(o.batch) : llvm::json::Value(nullptr)},
                    {"precision", ir::name(precision)},
                    {"device", device->name},
                    {"ms", timing->ms},
                    {"ms_min", timing->minMs},
                    {"ms_max", timing->maxMs},
                    {"peak_bytes", timing->peakBytes},
                    {"tflops", tflops},
                    {"roofline", share}});
    console.result(llvm::formatv("{0} {1} {2}: {3:f3} ms ({4:f3} to {5:f3}), {6}, {7:f4} TFLOP/s, {8:f0} % of the "
                                 "roofline",
                                 what, shape, ir::name(precision), timing->ms, timing->minMs, timing->maxMs,
                                 bytesText(timing->peakBytes), tflops, 100 * share)
                       .str());
  }
  return llvm::Error::success();
}

} // namespace

int bench(const CommonOptions &common, const BenchOptions &options) {
  Console console(common);
  return console.fail(benchAll(console, common, options));
}

} // namespace fusor::frontend::cli
