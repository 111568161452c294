#include "frontend/api/fp8_select.h"
#include "frontend/api/errors.h"
#include "frontend/bench/kernel_case.h"
#include "passes/pipeline.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::frontend {
namespace {

using Values = std::vector<Value>;

// Read in bf16, written in FP8, and transposed (read, written). A weight's copies are written by the optimizer.
constexpr double kQuantiseBytes = 2 + 1 + 2;

// The products of a training step's linear layer; scales are states, as in a step.
bench::KernelCase products(const LinearShape &s, bool inFp8, bool wgrad) {
  bench::KernelCase c;
  c.what = "select", c.name = inFp8 ? "fp8" : "bf16";
  DType act = inFp8 ? f8e4m3 : bf16, grad = inFp8 ? f8e5m2 : bf16;
  c.inputs = {{"x", act, {s.rows, s.k}}, {"w", act, {s.n, s.k}}, {"dy", grad, {s.rows, s.n}}};
  c.outputs = {{"y", bf16, {s.rows, s.n}}, {"dx", bf16, {s.rows, s.k}}};
  if (wgrad) c.outputs.push_back({"dw", f32, {s.n, s.k}});
  if (!inFp8) {
    c.body = [wgrad](Builder &b, const Values &in) {
      Values out{b.op("linear", {in[0], in[1]}), b.op("linear_input_grad", {in[2], in[1]})};
      if (wgrad) out.push_back(b.op("linear_weight_grad", {in[2], in[0]}, {{"out", f32}}));
      return out;
    };
    return c;
  }
  c.inputs.push_back({"wt", act, {s.k, s.n}});
  c.inputs.push_back({"scale", f32, {}});
  if (wgrad) c.inputs.push_back({"xt", act, {s.k, s.rows}}), c.inputs.push_back({"dyt", grad, {s.n, s.rows}});
  c.body = [wgrad](Builder &b, const Values &in) {
    auto product = [&](const Value &a, const Value &w, bool isForward) {
      Value sum = isForward ? b.op("linear", {a, w}, {{"out", f32}, {"fast_accum", true}})
                            : b.op("linear", {a, w}, {{"out", f32}});
      return b.op("mul", {b.op("mul", {sum, in[4]}), in[4]});
    };
    auto narrow = [&](const Value &v) { return b.op("cast", {v}, {{"to", bf16}}); };
    Values out{narrow(product(in[0], in[1], true)), narrow(product(in[2], in[3], false))};
    if (wgrad) out.push_back(product(in[6], in[5], false));
    return out;
  };
  return c;
}

llvm::Expected<LinearTimes> timesOf(const LinearShape &shape, bool wgrad, const DeviceSettings &settings,
                                    const ChosenDevice &device) {
  constexpr unsigned kRounds = 5, kLaunches = 8;
  LinearTimes times;
  for (bool inFp8 : {false, true}) {
    auto timing = bench::timeKernel(products(shape, inFp8, wgrad), settings, device, kRounds, kLaunches);
    if (!timing) return timing.takeError();
    (inFp8 ? times.fp8 : times.bf16) = timing->us;
    if (!inFp8) continue;
    double elements = static_cast<double>(shape.rows) * static_cast<double>(shape.k + shape.n);
    times.quantiseUs = elements * kQuantiseBytes * timing->copyUs / timing->bytes;
  }
  return times;
}

std::string joined(llvm::ArrayRef<std::string> layers) {
  return layers.front() + (layers.size() > 1 ? llvm::formatv(" and {0} more", layers.size() - 1).str() : "");
}

} // namespace

llvm::Expected<std::vector<LinearShape>> linearShapes(const ir::Module &module, const passes::PassOptions &given,
                                                      const ir::SymbolValues &symbols) {
  passes::PassOptions options = given;
  options.fp8->select = "all", options.fp8->inBf16.reset();
  auto copy = module.clone();
  passes::PassContext context(options);
  if (auto error = passes::runPasses(*copy, {"simplify", "precision", "fp8-insert"}, context)) return error;
  auto source = passes::sourceFunction(*copy, options);
  if (!source) return source.takeError();
  std::vector<LinearShape> shapes;
  for (const ir::Op &op : (*source)->block().ops()) {
    if (!op.is("linear") || !op.operand(1).op() || !op.operand(1).op()->is("quantize")) continue;
    llvm::StringRef layer = op.operand(1).op()->operand(1).name();
    layer.consume_back(".weight.scale");
    auto rows = ir::product(op.operand(0u).shape().drop_back()).evaluate(symbols);
    auto n = op.operand(1).shape()[0].evaluate(symbols), k = op.operand(1).shape()[1].evaluate(symbols);
    if (!rows || !n || !k)
      return inputError("--fp8-select auto measures at one size: give the symbols of {0} a value, --dim B=8", layer);
    auto same = llvm::find_if(shapes, [&](const LinearShape &s) { return s.rows == *rows && s.n == *n && s.k == *k; });
    if (same == shapes.end()) same = shapes.insert(shapes.end(), {*rows, *n, *k, {}});
    if (!llvm::is_contained(same->layers, layer)) same->layers.push_back(layer.str());
  }
  return shapes;
}

Fp8Selection selectionOf(llvm::ArrayRef<LinearShape> shapes, llvm::ArrayRef<LinearTimes> times) {
  Fp8Selection selection;
  for (auto [shape, time] : llvm::zip(shapes, times)) {
    bool isFaster = time.fp8 + time.quantiseUs < time.bf16;
    std::string what = llvm::formatv("{0} x {1} x {2}: {3:f1} us in bf16, {4:f1} us in FP8 and {5:f1} us to quantise",
                                     shape.rows, shape.n, shape.k, time.bf16, time.fp8, time.quantiseUs);
    if (!isFaster)
      for (const std::string &layer : shape.layers)
        selection.inBf16[layer] = "FP8 was measured and is not faster, " + what;
    selection.notes.push_back("--fp8-select auto: " + joined(shape.layers) + (isFaster ? " in FP8, " : " in bf16, ") +
                              what);
  }
  return selection;
}

llvm::Expected<Fp8Selection> selectFp8(const ir::Module &module, const passes::PassOptions &options,
                                       const ir::SymbolValues &symbols, const DeviceSettings &settings,
                                       const ChosenDevice &device) {
  auto shapes = linearShapes(module, options, symbols);
  if (!shapes) return shapes.takeError();
  if (!device.target.hasFp8) {
    Fp8Selection selection;
    std::string why = device.name + " only emulates FP8, which is never faster";
    for (const LinearShape &shape : *shapes)
      for (const std::string &layer : shape.layers) selection.inBf16[layer] = why;
    selection.notes.push_back(llvm::formatv("--fp8-select auto: {0}, so all {1} linear layers stay in bf16; with "
                                            "--fp8-select all they are trained in FP8, emulated",
                                            why, selection.inBf16.size()));
    return selection;
  }
  std::vector<LinearTimes> times;
  DeviceSettings quiet = settings;
  quiet.dumpDir.clear(), quiet.check = false;
  for (const LinearShape &shape : *shapes) {
    auto time = timesOf(shape, options.fp8->wgrad, quiet, device);
    if (!time) return time.takeError();
    times.push_back(*time);
  }
  return selectionOf(*shapes, times);
}

} // namespace fusor::frontend
