#include "runtime/cuda/bucket_runner.h"
#include "ir/graph/layer_name.h"
#include "runtime/cpu/cluster_check.h"
#include "runtime/execute/run_error.h"

namespace fusor::runtime {

namespace {
// More than this is copied beside the graph: a step's tokens and its loss are less.
constexpr int64_t kMostBytesInGraph = 1 << 20;
} // namespace

llvm::Error BucketRunner::run(DeviceBucket &bucket, HostSide *side, llvm::StringRef function,
                              std::vector<StepTime> &times) {
  kernels_ = launches_ = bucket.launches.size();
  bool timed = options_.profile, isLaunchByLaunch = !options_.graphs || bucket.hasHostSteps() || !bucket.ranOnce;
  bool isStepByStep = options_.check || capture_;
  if (!isStepByStep && !isLaunchByLaunch && !timed && side && bucket.ioTotal <= kMostBytesInGraph)
    return launchGraph(bucket, side, false);
  if (auto error = copyInputs(bucket, side)) return error;
  if (isStepByStep) {
    if (auto error = runStepByStep(bucket, function)) return error;
  } else if (isLaunchByLaunch) {
    bucket.ranOnce = true;
    if (auto error = putAll(bucket, timed, false)) return error;
  } else if (auto error = launchGraph(bucket, nullptr, timed)) {
    return error;
  }
  if (timed && !isStepByStep)
    if (auto error = collectTimes(bucket, times)) return error;
  return copyResults(bucket, side);
}

llvm::Error BucketRunner::copyInputs(const DeviceBucket &bucket, const HostSide *side) {
  return side ? stream_.upload(bucket.io.address(), side->memory.data(), bucket.inputTotal) : llvm::Error::success();
}

llvm::Error BucketRunner::copyResults(const DeviceBucket &bucket, const HostSide *side) {
  if (!side) return llvm::Error::success();
  return stream_.download(side->memory.data() + bucket.inputTotal, bucket.io.address() + bucket.inputTotal,
                          bucket.ioTotal - bucket.inputTotal);
}

llvm::Error BucketRunner::launchGraph(DeviceBucket &bucket, HostSide *side, bool timed) {
  CudaGraph &graph = timed ? bucket.timedGraph : side ? side->graph : bucket.graph;
  if (!graph) {
    auto captured = capture(bucket, side, timed);
    if (!captured) return captured.takeError();
    graph = std::move(*captured);
  }
  launches_ = 1;
  return stream_.launch(graph);
}

llvm::Expected<CudaGraph> BucketRunner::capture(DeviceBucket &bucket, const HostSide *side, bool timed) {
  if (auto error = stream_.beginCapture()) return error;
  auto error = copyInputs(bucket, side);
  if (!error) error = putAll(bucket, timed, true);
  if (!error) error = copyResults(bucket, side);
  auto graph = stream_.endCapture();
  if (!error) return graph;
  llvm::consumeError(graph.takeError());
  return error;
}

namespace {

// Around the launches of a layer one range, around those of a step another in it: "blocks.0", "blocks.0.qkv: linear".
// Of a graph they are around its making, which is where its nodes get their names.
class LaunchRanges {
public:
  LaunchRanges(const Nvtx *nvtx, const DeviceBucket &bucket) : nvtx_(nvtx), bucket_(bucket) {}
  ~LaunchRanges() { leave(); }
  void next(const DeviceLaunch &launch) {
    if (!nvtx_ || (step_ && *step_ == launch.step)) return;
    bool isCopy = launch.step == DeviceLaunch::kBehindAllSteps;
    llvm::StringRef value = isCopy ? "" : bucket_.steps[launch.step].code->op->result().name();
    llvm::StringRef layer = ir::layerOfName(value);
    bool isUnnamed = value.empty() && !isCopy; // it stays in the layer
    if (step_) nvtx_->pop();
    if (layer != layer_ && !isUnnamed) {
      if (!layer_.empty()) nvtx_->pop();
      layer_ = layer.str();
      if (!layer_.empty()) nvtx_->push(layer_.c_str());
    }
    step_ = launch.step;
    nvtx_->push((value.empty() ? launch.name : (value + ": " + launch.name).str()).c_str());
  }

private:
  void leave() {
    if (step_) nvtx_->pop();
    if (!layer_.empty()) nvtx_->pop();
  }
  const Nvtx *nvtx_;
  const DeviceBucket &bucket_;
  std::optional<unsigned> step_; // whose range is open
  std::string layer_;
};

} // namespace

llvm::Error BucketRunner::putAll(DeviceBucket &bucket, bool timed, bool inGraph) {
  auto mark = [&](size_t number) -> llvm::Error {
    if (!timed) return llvm::Error::success();
    if (bucket.events.size() <= number) {
      auto event = CudaEvent::create(context_, true);
      if (!event) return event.takeError();
      bucket.events.push_back(std::move(*event));
    }
    return stream_.record(bucket.events[number], inGraph);
  };
  if (auto error = mark(0)) return error;
  LaunchRanges ranges(nvtx_, bucket);
  for (size_t i = 0; i < bucket.launches.size(); ++i) {
    ranges.next(bucket.launches[i]);
    if (!inGraph && options_.cancel && options_.cancel->load(std::memory_order_relaxed))
      return llvm::make_error<CancelledError>();
    if (auto error = put(bucket, bucket.launches[i])) return error;
    if (auto error = mark(i + 1)) return error;
  }
  return llvm::Error::success();
}

llvm::Error BucketRunner::put(const DeviceBucket &bucket, const DeviceLaunch &launch) {
  switch (launch.kind) {
  case DeviceLaunch::Kind::kernel: return stream_.launch(launch.function, launch.shape, launch.arguments, launch.name);
  case DeviceLaunch::Kind::gemm: return bucket.gemms[launch.gemm].run(stream_, shared_.gemmWorkspace.address());
  case DeviceLaunch::Kind::copy: return stream_.copy(launch.to, launch.from, launch.bytes);
  case DeviceLaunch::Kind::host: return runOnHost(bucket, bucket.steps[launch.step]);
  }
  llvm_unreachable("every kind of launch is handled above");
}

llvm::Error BucketRunner::collectTimes(const DeviceBucket &bucket, std::vector<StepTime> &times) {
  if (auto error = stream_.synchronize()) return error;
  times.clear();
  unsigned before = DeviceLaunch::kBehindAllSteps;
  for (size_t i = 0; i < bucket.launches.size(); ++i) {
    auto milliseconds = bucket.events[i].millisecondsTo(bucket.events[i + 1]);
    if (!milliseconds) return milliseconds.takeError();
    const DeviceLaunch &launch = bucket.launches[i];
    StepTime &time = times.emplace_back(StepTime{launch.name, "copy", *milliseconds});
    if (launch.kind == DeviceLaunch::Kind::copy) {
      time.bytes = 2 * static_cast<double>(launch.bytes);
      continue;
    }
    const DeviceBucket::Step &step = bucket.steps[launch.step];
    time.kind = step.code->kind;
    if (launch.step != std::exchange(before, launch.step))
      time.bytes = static_cast<double>(step.bytes), time.flops = step.flops;
  }
  return llvm::Error::success();
}

// --- steps in the host's hands

llvm::Error BucketRunner::fetch(const DeviceBucket &bucket, llvm::ArrayRef<unsigned> buffers,
                                llvm::ArrayRef<ir::Value> values, std::vector<std::vector<char>> &to) {
  for (unsigned i = 0; i < buffers.size(); ++i) {
    to.emplace_back(*passes::storageBytes(values[i].type(), bucket.symbols));
    DevicePointer at = bucket.address(bucket.memory.buffers[buffers[i]].place, shared_);
    if (auto error = stream_.download(to.back().data(), at, to.back().size())) return error;
  }
  return stream_.synchronize();
}

llvm::Error BucketRunner::runOnHost(const DeviceBucket &bucket, const DeviceBucket::Step &step) {
  const DeviceCode &code = *step.code;
  std::vector<std::vector<char>> inputs;
  if (auto error = fetch(bucket, step.inputs, code.inputs, inputs)) return error;
  std::vector<const char *> in;
  for (const auto &input : inputs) in.push_back(input.data());
  auto results = code.body->evaluate(code.body->read(in, bucket.symbols), bucket.symbols);
  if (!results) return results.takeError();
  for (unsigned i = 0; i < results->size(); ++i) {
    ir::Value result = code.op->result(i);
    std::vector<char> raw(*passes::storageBytes(result.type(), bucket.symbols));
    writeTensor(result.type(), (*results)[i], raw.data());
    if (auto error = stream_.upload(bucket.address(bucket.memory.buffers[step.outputs[i]].place, shared_), raw.data(),
                                    raw.size()))
      return error;
    if (auto error = stream_.synchronize()) return error; // `raw` goes
  }
  return llvm::Error::success();
}

// Each step's results against its body in the reference, on live data; or its contents handed on.
llvm::Error BucketRunner::runStepByStep(const DeviceBucket &bucket, llvm::StringRef function) {
  for (size_t first = 0, end = 0; first < bucket.launches.size(); first = end) {
    unsigned number = bucket.launches[first].step;
    while (end < bucket.launches.size() && bucket.launches[end].step == number) ++end;
    auto putAll = [&]() -> llvm::Error {
      for (size_t i = first; i < end; ++i)
        if (auto error = put(bucket, bucket.launches[i])) return error;
      return stream_.synchronize(llvm::Twine("kernel '") + bucket.launches[first].name + "'");
    };
    bool isStep = number != DeviceLaunch::kBehindAllSteps;
    auto error = isStep && capture_ && capture_.wants(number) ? captureStep(bucket, first, end)
                 : isStep && options_.check ? checkStep(bucket, bucket.steps[number], function, putAll)
                                            : putAll();
    if (error) return error;
  }
  return llvm::Error::success();
}

llvm::Error BucketRunner::captureStep(const DeviceBucket &bucket, size_t first, size_t end) {
  StepContent content;
  content.step = bucket.launches[first].step;
  const DeviceBucket::Step &step = bucket.steps[content.step];
  if (auto error = fetch(bucket, step.inputs, step.code->inputs, content.inputs)) return error;
  for (size_t i = first; i < end; ++i) {
    if (auto error = put(bucket, bucket.launches[i])) return error;
    if (bucket.launches[i].kind != DeviceLaunch::Kind::gemm) continue;
    content.productOutput = step.code->gemm->output;
    if (!step.code->gemm->workspace) continue;
    content.product.resize(*step.code->set.workspaces.front().evaluate(bucket.symbols));
    if (auto error = stream_.download(content.product.data(), shared_.workspace.address(), content.product.size()))
      return error;
  }
  if (auto error = stream_.synchronize(llvm::Twine("kernel '") + bucket.launches[first].name + "'")) return error;
  if (auto error = fetch(bucket, step.outputs, step.code->op->results(), content.outputs)) return error;
  return capture_.take(std::move(content));
}

llvm::Error BucketRunner::checkStep(const DeviceBucket &bucket, const DeviceBucket::Step &step,
                                    llvm::StringRef function, llvm::function_ref<llvm::Error()> put) {
  ClusterCode described;
  described.op = step.code->op, described.name = step.code->name, described.kind = step.code->kind,
  described.body = step.code->body;
  std::vector<std::vector<char>> inputs, outputs;
  if (auto error = fetch(bucket, step.inputs, step.code->inputs, inputs)) return error;
  llvm::SmallVector<const char *, 32> in;
  llvm::SmallVector<char *, 32> out;
  for (const auto &input : inputs) in.push_back(input.data());
  ClusterCheck check(described, {in, out, nullptr}, bucket.symbols);
  if (auto error = put()) return error;
  if (auto error = fetch(bucket, step.outputs, step.code->op->results(), outputs)) return error;
  for (auto &output : outputs) out.push_back(output.data());
  if (!firstNonFinite_) firstNonFinite_ = check.nonFinite(function, {in, out, nullptr});
  return check.compare(function, {in, out, nullptr});
}

} // namespace fusor::runtime
