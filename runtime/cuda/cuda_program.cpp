#include "runtime/cuda/cuda_program.h"
#include "ir/graph/bug.h"
#include "ir/graph/printer.h"
#include "passes/fusion/fusion.h"
#include "runtime/cpu/cluster_check.h"
#include "runtime/cuda/device_bucket.h"
#include "runtime/execute/freshness.h"
#include "runtime/execute/bucket_key.h"
#include "runtime/execute/run_error.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>
#include <map>

namespace fusor::runtime {

using namespace ir;

namespace {

template <typename... Args> llvm::Error userError(const char *format, Args &&...args) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 llvm::formatv(format, std::forward<Args>(args)...).str());
}

struct FunctionCode {
  const Function *function = nullptr;
  std::vector<DeviceCode> codes;
  llvm::StringMap<std::unique_ptr<DeviceBucket>> buckets;
};

// Where inputs wait for their copy to the device. Two, so that the host fills one while the device still reads the
// other.
struct Staging {
  PinnedMemory memory;
  int64_t bytes = 0;
  CudaEvent copied;
  bool isInFlight = false;
};

class CudaProgram final : public Program {
public:
  CudaProgram(std::unique_ptr<Module> module, const Target &target, CompileOptions options, CudaPlatform platform)
      : Program(std::move(module), target, std::move(options)), platform_(std::move(platform)),
        context_(platform_.context), kernels_(target_, platform_.cublasLt != nullptr), freshness_(*module_) {
    if (platform_.cublasLt)
      gemms_ = std::make_unique<GemmChooser>(context_, platform_.cublasLt, platform_.cache.get(), options_.timeGemms);
    compileStats_.notes = platform_.notes;
  }

  llvm::Error prepare() {
    if (auto error = context_->makeCurrent()) return error;
    auto stream = CudaStream::create(context_);
    if (!stream) return stream.takeError();
    stream_ = std::move(*stream);
    for (Staging &staging : staging_) {
      auto event = CudaEvent::create(context_, false);
      if (!event) return event.takeError();
      staging.copied = std::move(*event);
    }
    if (auto error = allocatePersistents()) return error;
    auto deriving = derivingModule(*module_);
    if (!deriving) return deriving.takeError();
    derivedModule_ = std::move(*deriving);
    passes::PassOptions passOptions;
    passOptions.target = target_;
    passes::PassContext passContext(passOptions);
    if (auto fused = passes::fusion(*derivedModule_, passContext); !fused) return fused.takeError();
    if (auto error = lower(*module_, functions_)) return error;
    if (auto error = lower(*derivedModule_, derived_)) return error;
    return buildKernels();
  }

  llvm::Error run(llvm::StringRef name, llvm::ArrayRef<TensorView> inputs, llvm::ArrayRef<TensorView> outputs,
                  const SymbolValues &symbols) override {
    auto bound = bindSymbols(name, inputs, symbols);
    if (!bound) return bound.takeError();
    FunctionCode &code = functions_[name];
    if (auto error = checkOutputs(*code.function, outputs, *bound)) return error;
    if (options_.cancel && options_.cancel->load(std::memory_order_relaxed)) return llvm::make_error<CancelledError>();
    if (auto error = context_->makeCurrent()) return error;
    auto bucket = bucketOf(code, *bound);
    if (!bucket) return bucket.takeError();
    if (auto error = computeDerived(readsOf(*code.function))) return error;
    if (auto error = bind(**bucket)) return error;
    if (auto error = upload(**bucket, inputs)) return error;
    if (auto error = execute(code, **bucket)) return error;
    freshness_.ran(*code.function);
    return download(**bucket, outputs);
  }

  llvm::Error initialize(uint64_t seed) override {
    if (auto error = context_->makeCurrent()) return error;
    for (const auto &persistent : module_->persistents()) {
      if (persistent->kind != PersistentKind::param && persistent->kind != PersistentKind::state) continue;
      auto bytes = persistentBytes(persistent->name);
      if (!bytes) return bytes.takeError();
      int64_t elements = *bytes / byteSize(persistent->type.dtype);
      auto values = initialValues(*persistent, seed, elements);
      std::vector<char> raw(*bytes);
      for (int64_t i = 0; i < elements; ++i) storeElement(persistent->type.dtype, raw.data(), i, values[i]);
      if (auto error = write(persistent->name, raw)) return error;
    }
    freshness_.markAll();
    return ensureDerived();
  }

  llvm::Error readPersistent(llvm::StringRef name, llvm::MutableArrayRef<char> bytes) override {
    if (auto error = checkSize(name, bytes.size())) return error;
    if (auto error = context_->makeCurrent()) return error;
    if (auto error = computeDerived({name})) return error;
    if (auto error = stream_.download(bytes.data(), shared_.persistent(name), bytes.size())) return error;
    return stream_.synchronize(llvm::Twine("reading @") + name);
  }

  llvm::Error writePersistent(llvm::StringRef name, llvm::ArrayRef<char> bytes) override {
    if (auto error = checkSize(name, bytes.size())) return error;
    if (auto error = context_->makeCurrent()) return error;
    if (auto error = write(name, bytes)) return error;
    freshness_.written(name);
    return llvm::Error::success();
  }

  llvm::Error ensureDerived() override {
    if (auto error = context_->makeCurrent()) return error;
    llvm::SmallVector<llvm::StringRef, 8> all;
    for (const auto &persistent : module_->persistents()) all.push_back(persistent->name);
    return computeDerived(all);
  }

  llvm::Expected<passes::MemoryPlan> plan(llvm::StringRef name, const SymbolValues &symbols) override {
    if (auto function = this->function(name); !function) return function.takeError();
    SymbolValues bound = symbols;
    for (const auto &entry : options_.symbols) bound.try_emplace(entry.first(), entry.second);
    auto bucket = makeDeviceBucket(*functions_[name].function, functions_[name].codes, bound);
    if (!bucket) return bucket.takeError();
    return std::move((*bucket)->memory);
  }

  std::vector<KernelInfo> kernels() const override {
    std::vector<KernelInfo> infos;
    for (const auto &function : module_->functions()) {
      const FunctionCode &code = functions_.find(function->name())->second;
      for (const DeviceCode &step : code.codes) {
        KernelInfo info{function->name().str(), step.name, step.kind, "", 0};
        info.ops = step.op->body() ? printBlock(*step.op->body()) : printOp(*step.op);
        for (const auto &bucket : code.buckets)
          for (const DeviceBucket::Step &sized : bucket.second->steps)
            if (sized.code == &step) info.bytes = sized.bytes;
        infos.push_back(std::move(info));
      }
    }
    return infos;
  }

  std::vector<StepTime> stepTimes() const override { return times_; }
  unsigned kernelsPerRun() const override { return lastKernels_; }
  unsigned launchesPerRun() const override { return lastLaunches_; }

private:
  CudaPlatform platform_;
  CudaContextRef context_;
  CudaStream stream_;
  std::unique_ptr<GemmChooser> gemms_;
  DeviceBuffers shared_;
  DeviceKernels kernels_;
  Freshness freshness_;
  std::unique_ptr<Module> derivedModule_;
  llvm::StringMap<FunctionCode> functions_, derived_; // the latter by "derive.NAME"
  Staging staging_[2];
  unsigned nextStaging_ = 0;
  PinnedMemory results_;
  int64_t resultBytes_ = 0;
  std::vector<StepTime> times_;
  unsigned lastKernels_ = 0, lastLaunches_ = 0;

  // --- persistent values

  llvm::Error allocatePersistents() {
    int64_t total = 0;
    for (const auto &persistent : module_->persistents()) {
      auto bytes = passes::storageBytes(persistent->type, options_.symbols);
      if (!bytes)
        return userError("@{0} is {1}: its symbols must have a value when the module is compiled", persistent->name,
                         persistent->type.str());
      shared_.offsetOf[persistent->name] = total;
      total += static_cast<int64_t>(llvm::alignTo(*bytes, 256));
    }
    if (options_.memoryLimitBytes && total > options_.memoryLimitBytes)
      return llvm::make_error<OutOfMemoryError>(total, options_.memoryLimitBytes,
                                                llvm::formatv("the persistent values alone need {0} bytes, more than "
                                                              "the limit of {1}; a smaller width, fewer layers or a "
                                                              "narrower optimizer state lower it",
                                                              total, options_.memoryLimitBytes));
    auto memory = DeviceMemory::allocate(context_, total, "the persistent values");
    if (!memory) return memory.takeError();
    shared_.persistents = std::move(*memory);
    for (const auto &persistent : module_->persistents())
      if (persistent->kind == PersistentKind::constant)
        if (auto error = write(persistent->name, *persistent->data)) return error;
    return llvm::Error::success();
  }

  llvm::Error write(llvm::StringRef name, llvm::ArrayRef<char> bytes) {
    auto size = static_cast<int64_t>(bytes.size());
    if (auto error = stream_.upload(shared_.persistent(name), bytes.data(), size)) return error;
    return stream_.synchronize(llvm::Twine("writing @") + name);
  }

  llvm::Error checkSize(llvm::StringRef name, size_t given) const {
    auto bytes = persistentBytes(name);
    if (!bytes) return bytes.takeError();
    if (static_cast<int64_t>(given) == *bytes) return llvm::Error::success();
    return userError("@{0} has {1} bytes, {2} are given", name, *bytes, given);
  }

  llvm::Error computeDerived(llvm::ArrayRef<llvm::StringRef> names) {
    return freshness_.refresh(names, [&](const Persistent &persistent) -> llvm::Error {
      FunctionCode &code = derived_["derive." + persistent.name];
      auto bucket = bucketOf(code, options_.symbols);
      if (!bucket) return bucket.takeError();
      if (auto error = bind(**bucket)) return error;
      return execute(code, **bucket);
    });
  }

  // --- compiling

  llvm::Error lower(const Module &module, llvm::StringMap<FunctionCode> &functions) {
    auto codes = kernels_.lower(module);
    for (const auto &function : module.functions()) {
      for (const ReturnEntry &entry : function->returns())
        if (entry.kind == ReturnKind::gradient)
          return userError("@{0} returns gradients: run the optimizer pass before compiling", function->name());
      FunctionCode &code = functions[function->name()];
      code.function = function.get();
      code.codes = std::move(codes[function->name()]);
      for (const DeviceCode &step : code.codes)
        if (step.runsOnHost())
          if (auto error = addFallback({llvm::formatv("@{0}: {1}", function->name(), step.name), step.whyHost}))
            return error;
    }
    return llvm::Error::success();
  }

  llvm::Error buildKernels() {
    std::vector<const codegen::Kernel *> texts;
    for (const auto &kernel : kernels_.kernels()) texts.push_back(&kernel.code);
    KernelBuild build;
    build.compile = platform_.compile;
    build.compilerVersion = platform_.compilerVersion;
    build.arch = platform_.arch;
    build.options = {"--std=c++17"};
    build.cache = platform_.cache.get();
    build.threads = options_.threads;
    build.dumpDir = options_.dumpDir;
    auto images = runtime::buildKernels(texts, build, compileStats_);
    if (!images) return images.takeError();
    for (unsigned i = 0; i < texts.size(); ++i) {
      DeviceKernels::Kernel &kernel = kernels_.kernels()[i];
      auto module = CudaModule::load(context_, (*images)[i], kernel.code.name);
      if (!module) return module.takeError();
      kernel.module = std::move(*module);
      auto function = kernel.module.function(kernel.code.name, kernel.code.sharedBytes);
      if (!function) return function.takeError();
      kernel.function = *function;
    }
    return llvm::Error::success();
  }

  llvm::Expected<DeviceBucket *> bucketOf(FunctionCode &code, const SymbolValues &symbols) {
    auto &bucket = code.buckets[bucketKey(symbols)];
    if (bucket) return bucket.get();
    auto made = makeDeviceBucket(*code.function, code.codes, symbols);
    if (!made) return made.takeError();
    if (auto error = reserve(**made)) return error;
    bucket = std::move(*made);
    ++plansBuilt_;
    peakBytes_ = std::max(peakBytes_, bucket->memory.peakBytes());
    return bucket.get();
  }

  // Makes the shared buffers large enough; those that move take all bindings with them.
  llvm::Error reserve(const DeviceBucket &bucket) {
    const passes::MemoryPlan &memory = bucket.memory;
    auto advice = [&] {
      return llvm::formatv("@{0} needs {1} bytes; a smaller batch, --accumulate N or --recompute full lower it\n{2}",
                           memory.function, memory.peakBytes(), memory.text(5))
          .str();
    };
    if (options_.memoryLimitBytes && memory.peakBytes() > options_.memoryLimitBytes)
      return llvm::make_error<OutOfMemoryError>(
          memory.peakBytes(), options_.memoryLimitBytes,
          llvm::formatv("over the limit of {0} bytes: ", options_.memoryLimitBytes).str() + advice());
    auto grow = [&](DeviceMemory &held, int64_t bytes, llvm::StringRef purpose) -> llvm::Error {
      if (held ? held.bytes() >= bytes : bytes == 0) return llvm::Error::success();
      if (held)
        if (auto error = stream_.synchronize()) return error;
      ++shared_.version;
      held = DeviceMemory();
      auto memory = DeviceMemory::allocate(context_, bytes, purpose);
      if (!memory) return memory.takeError();
      held = std::move(*memory);
      return llvm::Error::success();
    };
    auto error = grow(shared_.arena, memory.arenaBytes, "the arena");
    if (!error) error = grow(shared_.workspace, memory.workspaceBytes, "workspaces");
    bool usesLibrary =
        llvm::any_of(bucket.steps, [](const DeviceBucket::Step &step) { return step.code->gemm.has_value(); });
    if (!error && usesLibrary) error = grow(shared_.gemmWorkspace, GemmChooser::kWorkspaceBytes, "cuBLASLt");
    if (!error) return llvm::Error::success();
    return llvm::handleErrors(std::move(error), [&](const OutOfMemoryError &e) -> llvm::Error {
      return llvm::make_error<OutOfMemoryError>(memory.peakBytes(), 0, e.message() + "; " + advice());
    });
  }

  llvm::Error bind(DeviceBucket &bucket) {
    if (bucket.boundTo == shared_.version) return llvm::Error::success();
    if (auto error = stream_.synchronize()) return error;
    auto error = bucket.bind(context_, stream_, shared_, kernels_.kernels(), gemms_.get());
    if (gemms_)
      for (const std::string &note : gemms_->choices().notes)
        if (!llvm::is_contained(compileStats_.notes, note)) compileStats_.notes.push_back(note);
    return error;
  }

  // --- running

  llvm::Error checkOutputs(const Function &function, llvm::ArrayRef<TensorView> outputs,
                           const SymbolValues &symbols) const {
    auto expected = resultTypes(function.name(), symbols);
    if (!expected) return expected.takeError();
    if (outputs.size() != expected->size())
      return userError("@{0} has {1} results, {2} outputs are given", function.name(), expected->size(),
                       outputs.size());
    for (unsigned i = 0; i < outputs.size(); ++i)
      if (outputs[i].dtype != (*expected)[i].dtype || outputs[i].shape != (*expected)[i].shape)
        return userError("output {0} of @{1} must be {2}, is {3}", i, function.name(), (*expected)[i].typeText(),
                         outputs[i].typeText());
    return llvm::Error::success();
  }

  llvm::Error upload(const DeviceBucket &bucket, llvm::ArrayRef<TensorView> inputs) {
    if (bucket.inputTotal == 0) return llvm::Error::success();
    Staging &staging = staging_[nextStaging_ ^= 1];
    if (staging.isInFlight)
      if (auto error = staging.copied.wait()) return error;
    staging.isInFlight = false;
    if (staging.bytes < bucket.inputTotal) {
      auto memory = PinnedMemory::allocate(context_, bucket.inputTotal);
      if (!memory) return memory.takeError();
      staging.memory = std::move(*memory);
      staging.bytes = bucket.inputTotal;
    }
    for (unsigned i = 0; i < inputs.size(); ++i)
      std::memcpy(staging.memory.data() + bucket.inputOffsets[i], inputs[i].data, inputs[i].bytes());
    if (auto error = stream_.upload(bucket.io.address(), staging.memory.data(), bucket.inputTotal)) return error;
    staging.isInFlight = true;
    return stream_.record(staging.copied);
  }

  llvm::Error download(const DeviceBucket &bucket, llvm::ArrayRef<TensorView> outputs) {
    if (outputs.empty()) return llvm::Error::success();
    int64_t bytes = bucket.ioTotal - bucket.inputTotal;
    if (resultBytes_ < bytes) {
      auto memory = PinnedMemory::allocate(context_, bytes);
      if (!memory) return memory.takeError();
      results_ = std::move(*memory);
      resultBytes_ = bytes;
    }
    if (auto error = stream_.download(results_.data(), bucket.io.address() + bucket.inputTotal, bytes)) return error;
    if (auto error = stream_.synchronize(llvm::Twine("@") + bucket.memory.function)) return error;
    for (unsigned i = 0; i < outputs.size(); ++i)
      std::memcpy(outputs[i].data, results_.data() + (bucket.outputOffsets[i] - bucket.inputTotal), outputs[i].bytes());
    return llvm::Error::success();
  }

  // The first time launch by launch, so that a failure names its kernel; later as one graph.
  llvm::Error execute(const FunctionCode &code, DeviceBucket &bucket) {
    lastKernels_ = bucket.launches.size();
    bool inSteps = options_.check || options_.profile || !options_.graphs || bucket.hasHostSteps();
    if (inSteps || !bucket.ranOnce) {
      lastLaunches_ = bucket.launches.size();
      bucket.ranOnce = true;
      return options_.check ? executeChecked(code, bucket) : executeInSteps(bucket);
    }
    if (!bucket.graph) {
      if (auto error = stream_.beginCapture()) return error;
      llvm::Error failed = llvm::Error::success();
      for (const DeviceLaunch &launch : bucket.launches)
        if ((failed = put(bucket, launch))) break;
      auto graph = stream_.endCapture();
      if (failed) {
        llvm::consumeError(graph.takeError());
        return failed;
      }
      if (!graph) return graph.takeError();
      bucket.graph = std::move(*graph);
    }
    lastLaunches_ = 1;
    return stream_.launch(bucket.graph);
  }

  llvm::Error put(const DeviceBucket &bucket, const DeviceLaunch &launch) {
    switch (launch.kind) {
    case DeviceLaunch::Kind::kernel:
      return stream_.launch(launch.function, launch.shape, launch.arguments, launch.name);
    case DeviceLaunch::Kind::gemm: return bucket.gemms[launch.gemm].run(stream_, shared_.gemmWorkspace.address());
    case DeviceLaunch::Kind::copy: return stream_.copy(launch.to, launch.from, launch.bytes);
    case DeviceLaunch::Kind::host: return runOnHost(bucket, bucket.steps[launch.step]);
    }
    llvm_unreachable("every kind of launch is handled above");
  }

  llvm::Error executeInSteps(const DeviceBucket &bucket) {
    std::vector<CudaEvent> events;
    auto mark = [&]() -> llvm::Error {
      if (!options_.profile) return llvm::Error::success();
      auto event = CudaEvent::create(context_, true);
      if (!event) return event.takeError();
      events.push_back(std::move(*event));
      return stream_.record(events.back());
    };
    if (auto error = mark()) return error;
    for (const DeviceLaunch &launch : bucket.launches) {
      if (options_.cancel && options_.cancel->load(std::memory_order_relaxed))
        return llvm::make_error<CancelledError>();
      if (auto error = put(bucket, launch)) return error;
      if (auto error = mark()) return error;
    }
    if (!options_.profile) return llvm::Error::success();
    if (auto error = stream_.synchronize()) return error;
    times_.clear();
    for (unsigned i = 0; i < bucket.launches.size(); ++i) {
      auto milliseconds = events[i].millisecondsTo(events[i + 1]);
      if (!milliseconds) return milliseconds.takeError();
      const DeviceLaunch &launch = bucket.launches[i];
      times_.push_back({launch.name,
                        launch.kind == DeviceLaunch::Kind::copy ? "copy" : bucket.steps[launch.step].code->kind,
                        *milliseconds});
    }
    return llvm::Error::success();
  }

  // --- steps in the host's hands

  llvm::Error fetch(const DeviceBucket &bucket, llvm::ArrayRef<unsigned> buffers, llvm::ArrayRef<Value> values,
                    std::vector<std::vector<char>> &to) {
    for (unsigned i = 0; i < buffers.size(); ++i) {
      to.emplace_back(*passes::storageBytes(values[i].type(), bucket.symbols));
      DevicePointer at = bucket.address(bucket.memory.buffers[buffers[i]].place, shared_);
      if (auto error = stream_.download(to.back().data(), at, to.back().size())) return error;
    }
    return stream_.synchronize();
  }

  llvm::Error runOnHost(const DeviceBucket &bucket, const DeviceBucket::Step &step) {
    const DeviceCode &code = *step.code;
    std::vector<std::vector<char>> inputs;
    if (auto error = fetch(bucket, step.inputs, code.inputs, inputs)) return error;
    std::vector<const char *> in;
    for (const auto &input : inputs) in.push_back(input.data());
    auto results = code.body->evaluate(code.body->read(in, bucket.symbols), bucket.symbols);
    if (!results) return results.takeError();
    for (unsigned i = 0; i < results->size(); ++i) {
      Value result = code.op->result(i);
      std::vector<char> raw(*passes::storageBytes(result.type(), bucket.symbols));
      writeTensor(result.type(), (*results)[i], raw.data());
      if (auto error = stream_.upload(bucket.address(bucket.memory.buffers[step.outputs[i]].place, shared_), raw.data(),
                                      raw.size()))
        return error;
      if (auto error = stream_.synchronize()) return error; // `raw` goes
    }
    return llvm::Error::success();
  }

  // Each step's results against its body in the reference, on live data.
  llvm::Error executeChecked(const FunctionCode &code, const DeviceBucket &bucket) {
    for (size_t first = 0, end = 0; first < bucket.launches.size(); first = end) {
      unsigned number = bucket.launches[first].step;
      while (end < bucket.launches.size() && bucket.launches[end].step == number) ++end;
      auto putAll = [&]() -> llvm::Error {
        for (size_t i = first; i < end; ++i)
          if (auto error = put(bucket, bucket.launches[i])) return error;
        return stream_.synchronize(llvm::Twine("kernel '") + bucket.launches[first].name + "'");
      };
      auto error =
          number == DeviceLaunch::kBehindAllSteps ? putAll() : checkStep(code, bucket, bucket.steps[number], putAll);
      if (error) return error;
    }
    return llvm::Error::success();
  }

  llvm::Error checkStep(const FunctionCode &code, const DeviceBucket &bucket, const DeviceBucket::Step &step,
                        llvm::function_ref<llvm::Error()> put) {
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
    return check.compare(code.function->name(), {in, out, nullptr});
  }
};

} // namespace

llvm::Expected<std::unique_ptr<Program>> compileForCuda(std::unique_ptr<Module> fused, const Target &target,
                                                        CompileOptions options, CudaPlatform platform) {
  auto program = std::make_unique<CudaProgram>(std::move(fused), target, std::move(options), std::move(platform));
  if (auto error = program->prepare()) return error;
  return std::unique_ptr<Program>(std::move(program));
}

} // namespace fusor::runtime
