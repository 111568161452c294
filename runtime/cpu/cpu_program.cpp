#include "runtime/cpu/cpu_program.h"
#include "codegen/emit/emit.h"
#include "ir/graph/bug.h"
#include "ir/graph/printer.h"
#include "ir/reference/initial_values.h"
#include "runtime/cpu/bucket.h"
#include "runtime/cpu/cluster_check.h"
#include "runtime/cpu/parallel.h"
#include "runtime/execute/bucket_key.h"
#include "runtime/execute/freshness.h"
#include "runtime/execute/run_error.h"
#include "runtime/execute/user_error.h"
#include "llvm/Support/MathExtras.h"
#include <chrono>
#include <cstring>
#include <thread>

namespace fusor::runtime {

using namespace ir;
using passes::Place;
using passes::PlaceKind;

namespace {

// A function's launch list, and its plans by sizes.
struct FunctionCode {
  const Function *function = nullptr;
  std::vector<std::unique_ptr<ClusterCode>> codes;
  llvm::StringMap<std::unique_ptr<Bucket>> buckets;
};

class CpuProgram final : public Program {
public:
  CpuProgram(std::unique_ptr<Module> module, const Target &target, CompileOptions options)
      : Program(std::move(module), target, std::move(options)),
        workers_(options_.threads ? options_.threads : std::max(1u, std::thread::hardware_concurrency())),
        freshness_(*module_) {}

  llvm::Error prepare() {
    if (auto error = allocatePersistents()) return error;
    for (const auto &function : module_->functions()) {
      double begin = spanClockMs();
      if (auto error = lower(*function, functions_[function->name()])) return error;
      compileStats_.spans.push_back({"lower", "@" + function->name().str(), 0, begin, spanClockMs() - begin});
    }
    auto deriving = derivingModule(*module_);
    if (!deriving) return deriving.takeError();
    derivedModule_ = std::move(*deriving);
    for (const auto &function : derivedModule_->functions())
      if (auto error = lower(*function, derived_[function->name()])) return error;
    return llvm::Error::success();
  }

  llvm::Error run(llvm::StringRef name, llvm::ArrayRef<TensorView> inputs, llvm::ArrayRef<TensorView> outputs,
                  const SymbolValues &symbols) override {
    auto bound = bindSymbols(name, inputs, symbols);
    if (!bound) return bound.takeError();
    FunctionCode &code = functions_[name];
    if (auto error = checkOutputs(*code.function, outputs, *bound)) return error;
    auto bucket = bucketOf(code, *bound);
    if (!bucket) return bucket.takeError();
    if (auto error = computeDerived(readsOf(*code.function))) return error;
    std::vector<char *> in, out;
    for (const TensorView &view : inputs) in.push_back(static_cast<char *>(view.data));
    for (const TensorView &view : outputs) out.push_back(static_cast<char *>(view.data));
    if (auto error = execute(code, **bucket, in, out)) return error;
    freshness_.ran(*code.function);
    lastSteps_ = (*bucket)->steps.size();
    return llvm::Error::success();
  }

  llvm::Error initialize(uint64_t seed) override {
    constexpr int64_t kElementsPerTask = 16384; // half a millisecond of normal numbers
    for (const auto &persistent : module_->persistents()) {
      if (persistent->kind != PersistentKind::param && persistent->kind != PersistentKind::state) continue;
      auto bytes = persistentBytes(persistent->name);
      if (!bytes) return bytes.takeError();
      int64_t size = byteSize(persistent->type.dtype), elements = *bytes / size;
      char *to = stores_[persistent->name].data();
      workers_.forEach(llvm::divideCeil(elements, kElementsPerTask), [&](int64_t task) {
        int64_t first = task * kElementsPerTask;
        storeInitialValues(*persistent, seed, first, std::min(kElementsPerTask, elements - first), to + first * size);
      });
    }
    freshness_.markAll();
    return ensureDerived();
  }

  llvm::Error readPersistent(llvm::StringRef name, llvm::MutableArrayRef<char> bytes) override {
    if (auto error = checkSize(name, bytes.size())) return error;
    if (auto error = computeDerived({name})) return error;
    std::memcpy(bytes.data(), stores_[name].data(), bytes.size());
    return llvm::Error::success();
  }

  llvm::Error writePersistent(llvm::StringRef name, llvm::ArrayRef<char> bytes) override {
    if (auto error = checkSize(name, bytes.size())) return error;
    std::memcpy(stores_[name].data(), bytes.data(), bytes.size());
    for (auto &function : functions_)
      for (auto &code : function.second.codes)
        if (code->packed && code->weight == name) code->packed->forget();
    freshness_.written(name);
    return llvm::Error::success();
  }

  llvm::Error ensureDerived() override {
    llvm::SmallVector<llvm::StringRef, 8> all;
    for (const auto &persistent : module_->persistents()) all.push_back(persistent->name);
    return computeDerived(all);
  }

  llvm::Expected<passes::MemoryPlan> plan(llvm::StringRef name, const SymbolValues &symbols) override {
    if (auto function = this->function(name); !function) return function.takeError();
    SymbolValues bound = withGiven(symbols);
    auto bucket = makeBucket(*functions_[name].function, functions_[name].codes, bound, isa_);
    if (!bucket) return bucket.takeError();
    return std::move((*bucket)->memory);
  }

  llvm::Expected<Description> describe(llvm::StringRef name, const SymbolValues &symbols) override {
    if (auto function = this->function(name); !function) return function.takeError();
    SymbolValues bound = withGiven(symbols);
    FunctionCode &code = functions_[name];
    auto bucket = bucketOf(code, bound);
    if (!bucket) return bucket.takeError();
    return describeBucket(*code.function, **bucket);
  }

  std::vector<KernelInfo> kernels() const override {
    std::vector<KernelInfo> infos;
    for (const auto &function : module_->functions()) {
      const FunctionCode &code = functions_.find(function->name())->second;
      for (const auto &cluster : code.codes) {
        KernelInfo info{function->name().str(), cluster->name, cluster->kind, "", 0};
        info.ops = cluster->op->body() ? printBlock(*cluster->op->body()) : printOp(*cluster->op);
        for (const auto &bucket : code.buckets)
          for (const BucketStep &step : bucket.second->steps)
            if (step.code == cluster.get()) info.bytes = step.bytes;
        infos.push_back(std::move(info));
      }
    }
    return infos;
  }

  unsigned kernelsPerRun() const override { return lastSteps_; }

private:
  Workers workers_;
  Isa isa_ = bestIsa();
  llvm::StringMap<AlignedMemory> stores_; // content of persistent values
  Freshness freshness_;
  llvm::StringMap<FunctionCode> functions_;
  std::unique_ptr<Module> derivedModule_;
  llvm::StringMap<FunctionCode> derived_; // "derive.NAME"
  AlignedMemory arena_, shared_;
  unsigned lastSteps_ = 0;
  int64_t persistentBytes_ = 0;

  // The steps as they run here, and beside each the kernels that any GPU would have for it.
  static Description describeBucket(const Function &function, const Bucket &bucket) {
    Description described;
    described.device = "cpu";
    described.function = &function, described.symbols = bucket.symbols, described.memory = bucket.memory;
    Target anyGpu;
    anyGpu.kind = DeviceKind::cuda, anyGpu.tier = ArchTier::simt, anyGpu.arch = "compute_75";
    codegen::FunctionKernels emitted = codegen::kernelsOf(function, anyGpu);
    for (codegen::DistinctKernel &distinct : emitted.kernels)
      described.kernels.emplace_back().code = std::move(distinct.kernel);
    llvm::DenseMap<const Op *, codegen::FunctionKernels::Fusion *> fusionOf;
    for (auto &fusion : emitted.fusions) fusionOf[fusion.op] = &fusion;
    for (const BucketStep &step : bucket.steps) {
      DescribedStep &entry = described.steps.emplace_back();
      entry.op = step.code->op, entry.name = step.code->name, entry.kind = step.code->kind;
      entry.inputs.assign(step.code->inputs.begin(), step.code->inputs.end());
      entry.fallback = step.code->fallbackReason();
      entry.bytes = step.bytes, entry.flops = step.flops;
      DescribedLaunch launch;
      launch.kind = DescribedLaunch::Kind::host, launch.step = described.steps.size() - 1, launch.name = entry.name;
      if (auto *fusion = fusionOf.lookup(entry.op)) {
        entry.set = std::move(fusion->set), entry.kernels = std::move(fusion->kernels);
        launch.kernel = entry.kernels.front();
      }
      described.launches.push_back(std::move(launch));
    }
    return described;
  }

  // --- persistent values

  llvm::Error allocatePersistents() {
    for (const auto &persistent : module_->persistents()) {
      auto bytes = passes::storageBytes(persistent->type, options_.symbols);
      if (!bytes)
        return userError("@{0} is {1}: its symbols must have a value when the module is compiled", persistent->name,
                         persistent->type.str());
      persistentBytes_ += *bytes;
      if (options_.memoryLimitBytes && persistentBytes_ > options_.memoryLimitBytes)
        return llvm::make_error<OutOfMemoryError>(
            persistentBytes_, options_.memoryLimitBytes,
            llvm::formatv(
                "the persistent values alone need more than the limit of {0} bytes; a smaller width, fewer layers or a "
                "narrower optimizer state lower it",
                options_.memoryLimitBytes));
      AlignedMemory &store = stores_[persistent->name];
      store = AlignedMemory(*bytes);
      if (!store)
        return llvm::make_error<OutOfMemoryError>(
            persistentBytes_, 0, llvm::formatv("no memory for @{0}, {1} bytes", persistent->name, *bytes));
      if (persistent->kind == PersistentKind::constant && !persistent->data->empty())
        std::memcpy(store.data(), persistent->data->data(), std::min<size_t>(*bytes, persistent->data->size()));
    }
    return llvm::Error::success();
  }

  llvm::Error computeDerived(llvm::ArrayRef<llvm::StringRef> names) {
    return freshness_.refresh(names, [&](const Persistent &persistent) -> llvm::Error {
      FunctionCode &code = derived_["derive." + persistent.name];
      auto bucket = bucketOf(code, options_.symbols);
      if (!bucket) return bucket.takeError();
      return execute(code, **bucket, {}, {});
    });
  }

  // --- compiling

  llvm::Error lower(const Function &function, FunctionCode &code) {
    code.function = &function;
    for (const ReturnEntry &entry : function.returns())
      if (entry.kind == ReturnKind::gradient)
        return userError("@{0} returns gradients: run the optimizer pass before compiling", function.name());
    for (const Op &op : function.block().ops()) {
      bool isConstant = op.operands().empty() && !op.body();
      if (op.def().isTerminator || op.def().lowering == Lowering::view || isConstant) continue;
      auto cluster = std::make_unique<ClusterCode>(lowerForCpu(op, target_));
      if (std::string reason = cluster->fallbackReason(); !reason.empty())
        if (auto error = addFallback({llvm::formatv("@{0}: {1}", function.name(), cluster->name), std::move(reason)}))
          return error;
      code.codes.push_back(std::move(cluster));
    }
    return llvm::Error::success();
  }

  llvm::Expected<Bucket *> bucketOf(FunctionCode &code, const SymbolValues &symbols) {
    auto &bucket = code.buckets[bucketKey(symbols)];
    if (bucket) return bucket.get();
    auto made = makeBucket(*code.function, code.codes, symbols, isa_);
    if (!made) return made.takeError();
    if (auto error = checkMemory((*made)->memory)) return error;
    bucket = std::move(*made);
    ++plansBuilt_;
    peakBytes_ = std::max(peakBytes_, bucket->memory.peakBytes());
    return bucket.get();
  }

  llvm::Error checkMemory(const passes::MemoryPlan &memory) {
    auto text = [&](llvm::StringRef why) {
      return llvm::formatv(
                 "{0}: @{1} needs {2} bytes; a smaller batch, --accumulate N or --recompute full lower it\n{3}", why,
                 memory.function, memory.peakBytes(), memory.text(5))
          .str();
    };
    if (options_.memoryLimitBytes && memory.peakBytes() > options_.memoryLimitBytes)
      return llvm::make_error<OutOfMemoryError>(
          memory.peakBytes(), options_.memoryLimitBytes,
          text(llvm::formatv("over the limit of {0} bytes", options_.memoryLimitBytes).str()));
    auto grow = [](AlignedMemory &held, int64_t bytes) {
      if (held && held.bytes() >= bytes) return true;
      held = AlignedMemory();
      held = AlignedMemory(bytes);
      return static_cast<bool>(held);
    };
    if (grow(arena_, memory.arenaBytes) && grow(shared_, memory.workspaceBytes)) return llvm::Error::success();
    return llvm::make_error<OutOfMemoryError>(memory.peakBytes(), 0, text("the machine has no memory left"));
  }

  // --- running

  char *address(const Place &place, const Bucket &bucket, llvm::ArrayRef<char *> inputs,
                llvm::ArrayRef<char *> outputs) {
    switch (place.kind) {
    case PlaceKind::arena: return arena_.data() + place.offset;
    case PlaceKind::input: return inputs[place.index];
    case PlaceKind::output: return outputs[place.index];
    case PlaceKind::persistent: return stores_[place.name].data();
    case PlaceKind::constant: return bucket.constants.data() + place.offset;
    }
    llvm_unreachable("every kind of place is handled above");
  }

  llvm::Error execute(FunctionCode &code, Bucket &bucket, llvm::ArrayRef<char *> inputs,
                      llvm::ArrayRef<char *> outputs) {
    std::vector<char *> at;
    for (const auto &buffer : bucket.memory.buffers) at.push_back(address(buffer.place, bucket, inputs, outputs));
    if (options_.profile) times_.clear();
    llvm::SmallVector<const char *, 32> in;
    llvm::SmallVector<char *, 32> out;
    for (const BucketStep &step : bucket.steps) {
      if (options_.cancel && options_.cancel->load(std::memory_order_relaxed))
        return llvm::make_error<CancelledError>();
      in.clear(), out.clear();
      for (unsigned buffer : step.inputs) in.push_back(at[buffer]);
      for (unsigned buffer : step.outputs) out.push_back(at[buffer]);
      StepMemory memory{in, out, shared_.data()};
      auto number = static_cast<unsigned>(&step - bucket.steps.data());
      bool captured = capture_ && capture_.wants(number);
      StepContent content{number, {}, {}, {}, {}};
      if (captured) content.inputs = contentsOf(step.code->inputs, in, bucket.symbols);
      if (auto error = runStep(code, bucket, step, memory)) return error;
      if (!captured) continue;
      llvm::SmallVector<const char *, 32> made(out.begin(), out.end());
      content.outputs = contentsOf(step.code->op->results(), made, bucket.symbols);
      if (auto error = capture_.take(std::move(content))) return error;
    }
    auto addressOf = [&](Value value) { return at[bucket.memory.bufferOf[value.def()]]; };
    auto bytesOf = [&](Value value) { return *passes::storageBytes(value.type(), bucket.symbols); };
    for (const auto &[output, value] : bucket.memory.resultCopies)
      if (int64_t bytes = *byteSize(value.type(), bucket.symbols)) // of none, there may be no address
        std::memcpy(outputs[output], addressOf(value), bytes);
    for (const passes::UpdateCopy &copy : bucket.memory.updateCopies)
      if (copy.stagingOffset >= 0)
        std::memcpy(arena_.data() + copy.stagingOffset, addressOf(copy.from), bytesOf(copy.from));
    for (const passes::UpdateCopy &copy : bucket.memory.updateCopies) {
      char *from = copy.stagingOffset >= 0 ? arena_.data() + copy.stagingOffset : addressOf(copy.from);
      char *to = stores_[copy.persistent].data();
      if (from != to) std::memcpy(to, from, bytesOf(copy.from));
    }
    return llvm::Error::success();
  }

  static std::vector<std::vector<char>> contentsOf(llvm::ArrayRef<Value> values, llvm::ArrayRef<const char *> at,
                                                   const SymbolValues &symbols) {
    std::vector<std::vector<char>> contents;
    for (unsigned i = 0; i < values.size(); ++i)
      contents.emplace_back(at[i], at[i] + *passes::storageBytes(values[i].type(), symbols));
    return contents;
  }

  llvm::Error runStep(const FunctionCode &code, const Bucket &bucket, const BucketStep &step,
                      const StepMemory &memory) {
    if (options_.check) {
      ClusterCheck check(*step.code, memory, bucket.symbols);
      step.step->run(memory, workers_);
      if (!firstNonFinite_) firstNonFinite_ = check.nonFinite(code.function->name(), memory);
      return check.compare(code.function->name(), memory);
    }
    if (!options_.profile) {
      step.step->run(memory, workers_);
      return llvm::Error::success();
    }
    auto start = std::chrono::steady_clock::now();
    step.step->run(memory, workers_);
    std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - start;
    times_.push_back({step.code->name, step.code->kind, ms.count(), static_cast<double>(step.bytes), step.flops});
    return llvm::Error::success();
  }
};

} // namespace

llvm::Expected<std::unique_ptr<Program>> compileForCpu(std::unique_ptr<Module> fused, const Target &target,
                                                       CompileOptions options) {
  auto program = std::make_unique<CpuProgram>(std::move(fused), target, std::move(options));
  if (auto error = program->prepare()) return error;
  return std::unique_ptr<Program>(std::move(program));
}

} // namespace fusor::runtime
