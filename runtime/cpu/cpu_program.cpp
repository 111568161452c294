#include "runtime/cpu/cpu_program.h"
#include "ir/graph/bug.h"
#include "ir/graph/builder.h"
#include "ir/graph/printer.h"
#include "runtime/cpu/bucket.h"
#include "runtime/cpu/cluster_check.h"
#include "runtime/cpu/parallel.h"
#include "runtime/execute/bucket_key.h"
#include "runtime/execute/run_error.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

namespace fusor::runtime {

using namespace ir;
using passes::Place;
using passes::PlaceKind;

namespace {

template <typename... Args> llvm::Error userError(const char *format, Args &&...args) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 llvm::formatv(format, std::forward<Args>(args)...).str());
}

// A function's launch list, and its plans by sizes.
struct FunctionCode {
  const Function *function = nullptr;
  std::vector<std::unique_ptr<ClusterCode>> codes;
  llvm::StringMap<std::unique_ptr<Bucket>> buckets;
};

struct Store {
  AlignedMemory memory;
  bool isStale = false; // a derived value whose sources changed
};

class CpuProgram final : public Program {
public:
  CpuProgram(std::unique_ptr<Module> module, const Target &target, CompileOptions options)
      : Program(std::move(module), target, std::move(options)),
        workers_(options_.threads ? options_.threads : std::max(1u, std::thread::hardware_concurrency())) {}

  llvm::Error prepare() {
    if (auto error = allocatePersistents()) return error;
    for (const auto &function : module_->functions())
      if (auto error = lower(*function, functions_[function->name()])) return error;
    return prepareDerived();
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
    markStale(*code.function);
    lastSteps_ = (*bucket)->steps.size();
    return llvm::Error::success();
  }

  llvm::Error initialize(uint64_t seed) override {
    for (const auto &persistent : module_->persistents()) {
      Store &store = stores_[persistent->name];
      if (persistent->kind == PersistentKind::derived) store.isStale = true;
      if (persistent->kind != PersistentKind::param && persistent->kind != PersistentKind::state) continue;
      auto bytes = persistentBytes(persistent->name);
      if (!bytes) return bytes.takeError();
      int64_t elements = *bytes / byteSize(persistent->type.dtype);
      auto values = initialValues(*persistent, seed, elements);
      for (int64_t i = 0; i < elements; ++i) storeElement(persistent->type.dtype, store.memory.data(), i, values[i]);
    }
    return ensureDerived();
  }

  llvm::Error readPersistent(llvm::StringRef name, llvm::MutableArrayRef<char> bytes) override {
    if (auto error = checkSize(name, bytes.size())) return error;
    if (auto error = computeDerived({name})) return error;
    std::memcpy(bytes.data(), stores_[name].memory.data(), bytes.size());
    return llvm::Error::success();
  }

  llvm::Error writePersistent(llvm::StringRef name, llvm::ArrayRef<char> bytes) override {
    if (auto error = checkSize(name, bytes.size())) return error;
    std::memcpy(stores_[name].memory.data(), bytes.data(), bytes.size());
    stores_[name].isStale = false;
    llvm::StringSet<> changed;
    changed.insert(name);
    markStale(changed, {});
    return llvm::Error::success();
  }

  llvm::Error ensureDerived() override {
    llvm::SmallVector<llvm::StringRef, 8> all;
    for (const auto &persistent : module_->persistents()) all.push_back(persistent->name);
    return computeDerived(all);
  }

  llvm::Expected<passes::MemoryPlan> plan(llvm::StringRef name, const SymbolValues &symbols) override {
    if (auto function = this->function(name); !function) return function.takeError();
    SymbolValues bound = symbols;
    for (const auto &entry : options_.symbols) bound.try_emplace(entry.first(), entry.second);
    auto bucket = makeBucket(*functions_[name].function, functions_[name].codes, bound, isa_);
    if (!bucket) return bucket.takeError();
    return std::move((*bucket)->memory);
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

  std::vector<StepTime> stepTimes() const override { return times_; }
  unsigned kernelsPerRun() const override { return lastSteps_; }

private:
  Workers workers_;
  Isa isa_ = bestIsa();
  llvm::StringMap<Store> stores_;
  llvm::StringMap<FunctionCode> functions_;
  Module derivedModule_{"derived"};
  llvm::StringMap<FunctionCode> derived_; // by the derived value's name
  AlignedMemory arena_, shared_;
  std::vector<StepTime> times_;
  unsigned lastSteps_ = 0;
  int64_t persistentBytes_ = 0;

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
      Store &store = stores_[persistent->name];
      store.memory = AlignedMemory(*bytes);
      if (!store.memory)
        return llvm::make_error<OutOfMemoryError>(
            persistentBytes_, 0, llvm::formatv("no memory for @{0}, {1} bytes", persistent->name, *bytes));
      store.isStale = persistent->kind == PersistentKind::derived;
      if (persistent->kind == PersistentKind::constant)
        std::memcpy(store.memory.data(), persistent->data->data(), std::min<size_t>(*bytes, persistent->data->size()));
    }
    return llvm::Error::success();
  }

  llvm::Error checkSize(llvm::StringRef name, size_t given) const {
    auto bytes = persistentBytes(name);
    if (!bytes) return bytes.takeError();
    if (static_cast<int64_t>(given) == *bytes) return llvm::Error::success();
    return userError("@{0} has {1} bytes, {2} are given", name, *bytes, given);
  }

  static llvm::SmallVector<llvm::StringRef, 8> readsOf(const Function &function) {
    llvm::SmallVector<llvm::StringRef, 8> names;
    for (Value read : function.reads())
      if (!read.unused()) names.push_back(read.name());
    return names;
  }

  // One function a derived value: `return @name = op(@source, ...)`.
  llvm::Error prepareDerived() {
    for (const auto &persistent : module_->persistents()) {
      Persistent copy = *persistent;
      derivedModule_.addPersistent(std::move(copy));
    }
    for (const auto &persistent : module_->persistents()) {
      if (persistent->kind != PersistentKind::derived) continue;
      Function &function = derivedModule_.addFunction("derive." + persistent->name);
      llvm::SmallVector<Value, 2> operands;
      for (const std::string &source : persistent->deriveFrom) operands.push_back(function.read(source));
      Builder builder(function.block());
      auto op = builder.create(persistent->deriveOp, operands, persistent->deriveAttrs);
      if (!op) return op.takeError();
      function.setReturns({{ReturnKind::update, persistent->name, (*op)->result()}});
      if (auto error = lower(function, derived_[persistent->name])) return error;
    }
    return llvm::Error::success();
  }

  // Those of `names` that are stale, and first what they derive from.
  llvm::Error computeDerived(llvm::ArrayRef<llvm::StringRef> names) {
    for (llvm::StringRef name : names) {
      auto store = stores_.find(name);
      if (store == stores_.end() || !store->second.isStale) continue;
      store->second.isStale = false;
      const Persistent *persistent = module_->persistent(name);
      llvm::SmallVector<llvm::StringRef, 2> sources(persistent->deriveFrom.begin(), persistent->deriveFrom.end());
      if (auto error = computeDerived(sources)) return error;
      FunctionCode &code = derived_[name];
      auto bucket = bucketOf(code, options_.symbols);
      if (!bucket) return bucket.takeError();
      if (auto error = execute(code, **bucket, {}, {})) return error;
    }
    return llvm::Error::success();
  }

  // Derived values of what `function` wrote, but for those it wrote itself.
  void markStale(const Function &function) {
    llvm::StringSet<> changed, fresh;
    for (const ReturnEntry &entry : function.returns()) {
      if (entry.kind != ReturnKind::update) continue;
      changed.insert(entry.name);
      fresh.insert(entry.name);
    }
    markStale(changed, fresh);
  }
  void markStale(llvm::StringSet<> changed, const llvm::StringSet<> &fresh) {
    for (const auto &persistent : module_->persistents()) { // in order: sources stand before what derives from them
      if (persistent->kind != PersistentKind::derived) continue;
      if (fresh.contains(persistent->name)) {
        stores_[persistent->name].isStale = false;
        continue;
      }
      for (const std::string &source : persistent->deriveFrom)
        if (changed.contains(source)) {
          stores_[persistent->name].isStale = true;
          changed.insert(persistent->name);
        }
    }
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

  char *address(const Place &place, const Bucket &bucket, llvm::ArrayRef<char *> inputs,
                llvm::ArrayRef<char *> outputs) {
    switch (place.kind) {
    case PlaceKind::arena: return arena_.data() + place.offset;
    case PlaceKind::input: return inputs[place.index];
    case PlaceKind::output: return outputs[place.index];
    case PlaceKind::persistent: return stores_[place.name].memory.data();
    case PlaceKind::constant: return bucket.constants.data() + place.offset;
    }
    llvm_unreachable("every kind of place is handled above");
  }

  llvm::Error execute(FunctionCode &code, Bucket &bucket, llvm::ArrayRef<char *> inputs,
                      llvm::ArrayRef<char *> outputs) {
    std::vector<char *> at;
    for (const auto &buffer : bucket.memory.buffers) at.push_back(address(buffer.place, bucket, inputs, outputs));
    times_.clear();
    llvm::SmallVector<const char *, 32> in;
    llvm::SmallVector<char *, 32> out;
    for (const BucketStep &step : bucket.steps) {
      if (options_.cancel && options_.cancel->load(std::memory_order_relaxed))
        return llvm::make_error<CancelledError>();
      in.clear(), out.clear();
      for (unsigned buffer : step.inputs) in.push_back(at[buffer]);
      for (unsigned buffer : step.outputs) out.push_back(at[buffer]);
      if (auto error = runStep(code, bucket, step, {in, out, shared_.data()})) return error;
    }
    auto addressOf = [&](Value value) { return at[bucket.memory.bufferOf[value.def()]]; };
    auto bytesOf = [&](Value value) { return *passes::storageBytes(value.type(), bucket.symbols); };
    for (const auto &[output, value] : bucket.memory.resultCopies)
      std::memcpy(outputs[output], addressOf(value), *byteSize(value.type(), bucket.symbols));
    for (const passes::UpdateCopy &copy : bucket.memory.updateCopies)
      if (copy.stagingOffset >= 0)
        std::memcpy(arena_.data() + copy.stagingOffset, addressOf(copy.from), bytesOf(copy.from));
    for (const passes::UpdateCopy &copy : bucket.memory.updateCopies) {
      char *from = copy.stagingOffset >= 0 ? arena_.data() + copy.stagingOffset : addressOf(copy.from);
      char *to = stores_[copy.persistent].memory.data();
      if (from != to) std::memcpy(to, from, bytesOf(copy.from));
    }
    return llvm::Error::success();
  }

  llvm::Error runStep(const FunctionCode &code, const Bucket &bucket, const BucketStep &step,
                      const StepMemory &memory) {
    if (options_.check) {
      ClusterCheck check(*step.code, memory, bucket.symbols);
      step.step->run(memory, workers_);
      return check.compare(code.function->name(), memory);
    }
    if (!options_.profile) {
      step.step->run(memory, workers_);
      return llvm::Error::success();
    }
    auto start = std::chrono::steady_clock::now();
    step.step->run(memory, workers_);
    std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - start;
    times_.push_back({step.code->name, step.code->kind, ms.count()});
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
