#include "runtime/cuda/cuda_program.h"
#include "ir/graph/printer.h"
#include "passes/fusion/fusion.h"
#include "runtime/cache/edited_kernel.h"
#include "runtime/cuda/bucket_runner.h"
#include "runtime/cuda/describe_bucket.h"
#include "runtime/cuda/device_state.h"
#include "runtime/cuda/gemm_notes.h"
#include "runtime/cuda/run_queue.h"
#include "runtime/execute/bucket_key.h"
#include "runtime/execute/freshness.h"
#include "runtime/execute/run_error.h"
#include "runtime/execute/user_error.h"

namespace fusor::runtime {

using namespace ir;

namespace {

struct FunctionCode {
  const Function *function = nullptr;
  llvm::SmallVector<llvm::StringRef, 8> reads; // persistent values
  std::vector<DeviceCode> codes;
  llvm::StringMap<std::unique_ptr<DeviceBucket>> buckets;
};

/// The last run that was started: a training step is started again and again with the same shapes.
struct LastStart {
  std::string name;
  std::vector<TensorView> inputs; // without their data
  FunctionCode *code = nullptr;
  DeviceBucket *bucket = nullptr;

  bool isLike(llvm::StringRef other, llvm::ArrayRef<TensorView> given) const {
    auto same = [](const TensorView &a, const TensorView &b) { return a.dtype == b.dtype && a.shape == b.shape; };
    return bucket && name == other && inputs.size() == given.size() &&
           std::equal(inputs.begin(), inputs.end(), given.begin(), same);
  }
};

class CudaProgram final : public Program {
public:
  CudaProgram(std::unique_ptr<Module> module, const Target &target, CompileOptions options, CudaPlatform platform)
      : Program(std::move(module), target, std::move(options)), platform_(std::move(platform)),
        context_(platform_.context), kernels_(target, platform_.cublasLt != nullptr), freshness_(*module_) {
    if (platform_.cublasLt)
      gemms_ = std::make_unique<GemmChooser>(context_, platform_.cublasLt, platform_.cache.get(), options_.timeGemms);
    compileStats_.notes = platform_.notes;
  }

  ~CudaProgram() override { // what is on its way reads and writes memory that goes
    if (stream_ && !context_->makeCurrent()) llvm::consumeError(stream_.synchronize());
  }

  llvm::Error prepare() {
    if (auto error = context_->makeCurrent()) return error;
    auto stream = CudaStream::create(context_);
    if (!stream) return stream.takeError();
    stream_ = std::move(*stream);
    if (auto error = state_.allocate(options_, stream_)) return error;
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
    if (auto error = checkOutputs(*functions_[name].function, outputs, *bound)) return error;
    auto number = startBound(name, inputs, *bound);
    if (!number) return number.takeError();
    return finish(*number, outputs);
  }

  llvm::Expected<unsigned> start(llvm::StringRef name, llvm::ArrayRef<TensorView> inputs,
                                 const SymbolValues &symbols) override {
    if (symbols.empty() && lastStart_.isLike(name, inputs))
      return startIn(*lastStart_.code, *lastStart_.bucket, inputs);
    auto bound = bindSymbols(name, inputs, symbols);
    if (!bound) return bound.takeError();
    return startBound(name, inputs, *bound);
  }

  bool isDeferred() const override { return !options_.check && !options_.profile && !capture_; }

  llvm::Error stage(llvm::StringRef name, llvm::MutableArrayRef<TensorView> inputs) override {
    if (!lastStart_.isLike(name, inputs)) return llvm::Error::success();
    if (auto error = context_->makeCurrent()) return error;
    auto side = queue_.next(*lastStart_.bucket);
    if (!side) return side.takeError();
    for (unsigned i = 0; *side && i < inputs.size(); ++i)
      inputs[i].data = (*side)->memory.data() + lastStart_.bucket->inputOffsets[i];
    return llvm::Error::success();
  }

  llvm::Error finish(unsigned number, llvm::ArrayRef<TensorView> outputs) override {
    auto run = queue_.take(number);
    if (!run) return userError("run {0} was not started, or has been finished", number);
    if (auto error = checkOutputs(*run->function, outputs, run->bucket->symbols)) return error;
    if (auto error = context_->makeCurrent()) return error;
    return queue_.read(*run, outputs);
  }

  llvm::Expected<double> timeRuns(llvm::StringRef name, llvm::ArrayRef<TensorView> inputs, unsigned runs,
                                  const SymbolValues &symbols) override {
    auto bound = bindSymbols(name, inputs, symbols);
    if (!bound) return bound.takeError();
    FunctionCode &code = functions_[name];
    if (auto error = context_->makeCurrent()) return error;
    auto bucket = bucketOf(code, *bound);
    if (!bucket) return bucket.takeError();
    if (auto error = prepareRun(code, **bucket)) return error;
    auto side = queue_.fill(**bucket, inputs);
    if (!side) return side.takeError();
    auto begin = CudaEvent::create(context_, true);
    if (!begin) return begin.takeError();
    auto end = CudaEvent::create(context_, true);
    if (!end) return end.takeError();
    constexpr unsigned kBefore = 2; // with the inputs, and the first of the graph without them
    for (unsigned i = 0; i < kBefore + runs; ++i) {
      if (i == kBefore)
        if (auto error = stream_.record(*begin)) return error;
      if (auto error = execute(code, **bucket, i == 0 ? *side : nullptr)) return error;
    }
    if (auto error = stream_.record(*end)) return error;
    if (auto error = stream_.synchronize("@" + name)) return error;
    auto milliseconds = begin->millisecondsTo(*end);
    if (!milliseconds) return milliseconds.takeError();
    return *milliseconds / std::max(1u, runs);
  }

  llvm::Error initialize(uint64_t seed) override {
    if (auto error = context_->makeCurrent()) return error;
    if (auto error = state_.initialize(seed, options_.threads, stream_)) return error;
    freshness_.markAll();
    return ensureDerived();
  }

  llvm::Error readPersistent(llvm::StringRef name, llvm::MutableArrayRef<char> bytes) override {
    if (auto error = checkSize(name, bytes.size())) return error;
    if (auto error = context_->makeCurrent()) return error;
    if (auto error = computeDerived({name})) return error;
    return state_.read(name, bytes, stream_);
  }

  llvm::Error writePersistent(llvm::StringRef name, llvm::ArrayRef<char> bytes) override {
    if (auto error = checkSize(name, bytes.size())) return error;
    if (auto error = context_->makeCurrent()) return error;
    if (auto error = state_.write(name, bytes, stream_)) return error;
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
    SymbolValues bound = withGiven(symbols);
    auto bucket = makeDeviceBucket(*functions_[name].function, functions_[name].codes, bound);
    if (!bucket) return bucket.takeError();
    return std::move((*bucket)->memory);
  }

  llvm::Expected<Description> describe(llvm::StringRef name, const SymbolValues &symbols) override {
    if (auto function = this->function(name); !function) return function.takeError();
    SymbolValues bound = withGiven(symbols);
    FunctionCode &code = functions_[name];
    if (auto error = context_->makeCurrent()) return error;
    auto bucket = bucketOf(code, bound);
    if (!bucket) return bucket.takeError();
    if (auto error = bind(**bucket)) return error;
    Description described = describeBucket(*code.function, **bucket, kernels_.kernels());
    described.device = context_->device().name;
    if (options_.forDump)
      if (auto error = addPtx(described)) return error;
    return described;
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
            if (sized.code->op == step.op) info.bytes = sized.bytes;
        infos.push_back(std::move(info));
      }
    }
    return infos;
  }

  GemmPlans gemmPlans() const override { return gemms_ ? gemms_->plans() : GemmPlans(); }
  void adoptGemmPlans(const GemmPlans &plans) override {
    if (gemms_) gemms_->adopt(plans);
    takeGemmNotes();
  }

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
  DeviceState state_{*module_, context_, shared_};
  BucketRunner runner_{context_, stream_, shared_, options_, capture_, platform_.nvtx};
  RunQueue queue_{context_};
  LastStart lastStart_;
  unsigned lastKernels_ = 0, lastLaunches_ = 0;

  llvm::Error computeDerived(llvm::ArrayRef<llvm::StringRef> names) {
    return freshness_.refresh(names, [&](const Persistent &persistent) -> llvm::Error {
      FunctionCode &code = derived_["derive." + persistent.name];
      auto bucket = bucketOf(code, options_.symbols);
      if (!bucket) return bucket.takeError();
      if (auto error = bind(**bucket)) return error;
      return execute(code, **bucket, nullptr);
    });
  }

  // --- compiling

  llvm::Error lower(const Module &module, llvm::StringMap<FunctionCode> &functions) {
    double begin = spanClockMs();
    auto codes = kernels_.lower(module);
    compileStats_.spans.push_back({"lower", "all functions: kernels as text", 0, begin, spanClockMs() - begin});
    for (const auto &function : module.functions()) {
      for (const ReturnEntry &entry : function->returns())
        if (entry.kind == ReturnKind::gradient)
          return userError("@{0} returns gradients: run the optimizer pass before compiling", function->name());
      FunctionCode &code = functions[function->name()];
      code.function = function.get();
      code.reads = readsOf(*function);
      code.codes = std::move(codes[function->name()]);
      noteOwnGemms(compileStats_, "@" + function->name(), code.codes,
                   [](const DeviceCode &step) { return step.whyOwn; });
      for (const DeviceCode &step : code.codes)
        if (step.runsOnHost())
          if (auto error = addFallback({llvm::formatv("@{0}: {1}", function->name(), step.name), step.whyHost}))
            return error;
    }
    return llvm::Error::success();
  }

  // Texts that a user installed in place of generated ones: never quietly.
  llvm::Error takeEdited() {
    if (!platform_.cache || !platform_.cache->mayHave(kEditedKernel)) return llvm::Error::success();
    std::string names;
    unsigned count = 0;
    for (auto &kernel : kernels_.kernels()) {
      auto text = platform_.cache->get(kEditedKernel, editedKernelKey(kernel.code.source));
      if (!text) continue;
      kernel.edited = std::move(*text);
      names += (count++ ? ", " : "") + kernel.code.name;
    }
    if (count == 0) return llvm::Error::success();
    return addFallback({llvm::formatv("{0} kernel{1}", count, count == 1 ? "" : "s"),
                        "edited texts run in place of the generated ones: " + names +
                            " (`fusor replay FOLDER --uninstall` or `fusor cache clear` ends that)"});
  }

  KernelBuild kernelBuild() const {
    KernelBuild build;
    build.compile = platform_.compile;
    build.compilerVersion = platform_.compilerVersion;
    build.arch = platform_.arch;
    build.options = {"--std=c++17"};
    if (options_.forDump) build.options.push_back("-lineinfo"); // an entry of its own in the cache
    build.cache = platform_.cache.get();
    build.threads = options_.threads;
    return build;
  }

  llvm::Error buildKernels() {
    if (auto error = takeEdited()) return error;
    std::vector<codegen::Kernel> edited; // copies with the text that runs
    edited.reserve(kernels_.kernels().size());
    std::vector<const codegen::Kernel *> texts;
    for (const auto &kernel : kernels_.kernels()) {
      texts.push_back(&kernel.code);
      if (kernel.edited.empty()) continue;
      edited.push_back(kernel.code);
      edited.back().source = kernel.edited;
      texts.back() = &edited.back();
    }
    auto images = runtime::buildKernels(texts, kernelBuild(), compileStats_);
    if (!images) return images.takeError();
    return kernels_.load(context_, *images, options_.forDump);
  }

  // The cache keeps cubins alone, so the assembly text is compiled for those who read it.
  llvm::Error addPtx(Description &described) {
    llvm::StringRef arch = platform_.arch;
    if (!arch.consume_front("sm_")) return llvm::Error::success(); // the images are PTX already
    std::vector<const codegen::Kernel *> texts;
    for (const DescribedKernel &kernel : described.kernels) texts.push_back(&kernel.code);
    KernelBuild build = kernelBuild();
    build.arch = "compute_" + arch.str();
    build.cache = nullptr;
    CompileStats uncounted; // nothing that a run needed
    auto images = runtime::buildKernels(texts, build, uncounted);
    if (!images) return images.takeError();
    for (auto [kernel, image] : llvm::zip(described.kernels, *images))
      kernel.ptx = llvm::StringRef(image).rtrim('\0').str();
    return llvm::Error::success();
  }

  llvm::Expected<DeviceBucket *> bucketOf(FunctionCode &code, const SymbolValues &symbols) {
    auto &bucket = code.buckets[bucketKey(symbols)];
    if (bucket) return bucket.get();
    auto made = makeDeviceBucket(*code.function, code.codes, symbols);
    if (!made) return made.takeError();
    if (auto error = reserve(**made)) return error;
    bucket = std::move(*made);
    noteOwnGemms(
        compileStats_, "@" + code.function->name() + " with " + bucketKey(symbols), code.codes,
        [&](const DeviceCode &step) { return step.gemm ? whySizesDoNotFit(*step.gemm, symbols) : std::string(); });
    ++plansBuilt_;
    peakBytes_ = std::max(peakBytes_, bucket->memory.peakBytes());
    return bucket.get();
  }

  llvm::Error reserve(const DeviceBucket &bucket) {
    bool usesLibrary =
        llvm::any_of(bucket.steps, [](const DeviceBucket::Step &step) { return step.code->gemm.has_value(); });
    return shared_.reserve(context_, stream_, bucket.memory, usesLibrary ? GemmChooser::kWorkspaceBytes : 0,
                           options_.memoryLimitBytes);
  }

  llvm::Error bind(DeviceBucket &bucket) {
    if (bucket.boundTo == shared_.version) return llvm::Error::success();
    if (auto error = reserve(bucket)) return error; // a larger bucket that did not fit may have given them back
    if (auto error = stream_.synchronize()) return error;
    auto error = bucket.bind(context_, stream_, shared_, kernels_.kernels(), gemms_.get());
    takeGemmNotes();
    return withPlan(std::move(error), bucket.memory);
  }

  void takeGemmNotes() {
    if (gemms_) noteGemmChoices(compileStats_, gemms_->choices());
  }

  // --- running

  llvm::Expected<unsigned> startBound(llvm::StringRef name, llvm::ArrayRef<TensorView> inputs,
                                      const SymbolValues &bound) {
    FunctionCode &code = functions_[name];
    if (auto error = context_->makeCurrent()) return error;
    auto bucket = bucketOf(code, bound);
    if (!bucket) return bucket.takeError();
    lastStart_ = {name.str(), {inputs.begin(), inputs.end()}, &code, *bucket};
    for (TensorView &input : lastStart_.inputs) input.data = nullptr;
    return startIn(code, **bucket, inputs);
  }

  llvm::Expected<unsigned> startIn(FunctionCode &code, DeviceBucket &bucket, llvm::ArrayRef<TensorView> inputs) {
    if (auto error = prepareRun(code, bucket)) return error;
    auto side = queue_.fill(bucket, inputs);
    if (!side) return side.takeError();
    if (auto error = execute(code, bucket, *side)) return error;
    if (!firstNonFinite_) firstNonFinite_ = runner_.firstNonFinite();
    lastKernels_ = runner_.kernels(), lastLaunches_ = runner_.launches();
    return queue_.add(*code.function, bucket, *side, stream_);
  }

  // Fresh derived values, and addresses that hold.
  llvm::Error prepareRun(const FunctionCode &code, DeviceBucket &bucket) {
    if (options_.cancel && options_.cancel->load(std::memory_order_relaxed)) return llvm::make_error<CancelledError>();
    if (auto error = context_->makeCurrent()) return error;
    if (auto error = computeDerived(code.reads)) return error;
    return bind(bucket);
  }

  llvm::Error execute(const FunctionCode &code, DeviceBucket &bucket, HostSide *side) {
    NvtxRange range(platform_.nvtx, "@" + code.function->name());
    if (auto error = runner_.run(bucket, side, code.function->name(), times_))
      return withPlan(std::move(error), bucket.memory);
    freshness_.ran(*code.function);
    return llvm::Error::success();
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
