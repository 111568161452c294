// A Program: a compiled module that runs. The same interface for every device.
//
//   auto program = compile(std::move(fused), target, {.threads = 2});       // Expected<std::unique_ptr<Program>>
//   (*program)->initialize(seed);                                           // params and states get their initial
//   values
//   (*program)->run("step", {tokens, targets}, {loss});                     // persistent values are updated in place
//
// A function is planned once for every set of symbol values it is run with (a bucket); running it again plans nothing.
// A Program is used by one thread at a time; compile() may be called from several.
#pragma once
#include "codegen/plan/cluster.h"
#include "runtime/execute/description.h"
#include "runtime/execute/non_finite.h"
#include "runtime/execute/slice_bounds.h"
#include "runtime/execute/tensor_view.h"
#include <atomic>
#include <functional>
#include <map>

namespace fusor::runtime {

struct CompileOptions {
  unsigned threads = 0;         // 0: all of the machine's
  int64_t memoryLimitBytes = 0; // 0: no limit; a plan whose peak is larger is an OutOfMemoryError
  bool strict = false;          // a fallback is an error
  bool check = false;           // run each cluster's body through the float64 reference beside it; see CheckError
  bool profile = false;         // keep the time of each step, see Program::stepTimes
  /// Looked at between steps; once true, run() returns a CancelledError. What was not yet updated keeps its old value.
  const std::atomic<bool> *cancel = nullptr;
  /// Symbols of persistent values' shapes, e.g. the batch of a KV cache, and any others that inputs do not fix.
  ir::SymbolValues symbols;
  // CUDA only
  int device = 0;        // number of the GPU, as CUDA counts
  bool ownGemm = false;  // generated GEMM kernels in place of cuBLASLt's (--blas own)
  bool timeGemms = true; // cuBLASLt's algorithms are measured and the fastest kept; else the library's favourite
  bool graphs = true;    // a run is one CUDA graph where nothing runs on the host; else one launch a kernel
  std::string cacheDir;  // compiled kernels; empty: the default folder
  bool forDump = false;  // kernels have line numbers, and describe() their binaries
};

/// One step of a function's launch list.
struct KernelInfo {
  std::string function; // which function it belongs to
  std::string name;     // of the kernel, e.g. "layer_norm_3"
  std::string kind;     // "row", "contraction", ..., "reference" for a fallback
  std::string ops;      // the IR it implements, one op a line
  int64_t bytes = 0;    // read and written once, in the bucket planned last
};

/// Something ran in a slower or less exact way than it should.
struct Fallback {
  std::string where;  // "@step: arg_reduce %y"
  std::string reason; // "no kernel class takes arg_reduce over a leading dim"
};

/// A part of compiling, for a trace.
struct CompileSpan {
  std::string what, name;     // "lower", "@train_step"; "nvrtc", a kernel; "time a GEMM", a shape
  unsigned thread = 0;        // 0: the one that called; others are numbered from 1
  double beginMs = 0, ms = 0; // since some moment before
};
/// Now, as CompileSpan::beginMs counts.
double spanClockMs();

/// What compiling cost.
struct CompileStats {
  unsigned compiled = 0, fromCache = 0; // kernels
  double milliseconds = 0;
  unsigned timedGemms = 0;        // shapes whose algorithms were measured; 0 when all were known
  unsigned ownGemms = 0;          // products that the library does not have, or not in the sizes of a planned bucket
  std::vector<std::string> notes; // what the user should know: a cache that cannot be written, ...
  std::vector<CompileSpan> spans;
};

struct StepTime {
  std::string name, kind; // of the kernel, as in KernelInfo; "copy"
  double ms = 0;
  double bytes = 0, flops = 0; // read and written once; of products. 0 for the later kernels of a step that has several
};

/// What a step read and wrote in one run: raw elements, one entry a buffer.
struct StepContent {
  unsigned step = 0; // number in Description::steps
  std::vector<std::vector<char>> inputs, outputs;
  std::vector<char> product; // of a library, which the step's kernels read in workspace 0; empty where there is none
  std::optional<unsigned> productOutput; // the result that a library writes and the kernels read, where it is one
};
/// Whom the contents of steps are handed to, in runs from now on. Such runs are slow.
struct StepCapture {
  std::function<bool(unsigned step)> wants;
  std::function<llvm::Error(StepContent)> take;
  explicit operator bool() const { return static_cast<bool>(take); }
};

/// Which algorithms of a library compute a program's products. Others round in another order: to go on with the same
/// bits, a checkpoint keeps them.
struct GemmPlans {
  std::string environment;                 // device and library they are for
  std::map<std::string, std::string> text; // by shape; opaque
};

class Program {
public:
  virtual ~Program();
  Program(const Program &) = delete;

  const ir::Module &module() const { return *module_; }
  const ir::Target &target() const { return target_; }

  /// Runs `function`: one view per argument, one per plain result, in order. Inputs fix the symbols; `symbols` gives
  /// those they do not. Errors name the argument, what it must be and what was given.
  virtual llvm::Error run(llvm::StringRef function, llvm::ArrayRef<TensorView> inputs,
                          llvm::ArrayRef<TensorView> outputs, const ir::SymbolValues &symbols = {}) = 0;

  /// run() in two halves. start() returns while a GPU works, and the inputs' memory is the caller's again; runs are
  /// done in the order they were started. finish() waits for run `number` and writes its results, once for each run.
  ///
  ///   auto next = program.start("train_step", {tokens, targets});   // step n + 1 is on its way
  ///   program.finish(previous, {loss});                             // the loss of step n
  virtual llvm::Expected<unsigned> start(llvm::StringRef function, llvm::ArrayRef<TensorView> inputs,
                                         const ir::SymbolValues &symbols = {});
  virtual llvm::Error finish(unsigned number, llvm::ArrayRef<TensorView> outputs);
  /// Where the next start() of `function` would copy `inputs` to: whoever makes them there saves that copy, and passes
  /// the same views to start(). Leaves `data` as it is where start() takes inputs from anywhere (a CPU), or has not
  /// seen these shapes in its last run.
  virtual llvm::Error stage(llvm::StringRef function, llvm::MutableArrayRef<TensorView> inputs);
  /// Whether start() returns before the run is done; else it does all of it.
  virtual bool isDeferred() const { return false; }
  /// How many runs a loop has at most on their way, and reads down to one when it is there: four start one right behind
  /// the other. The host's memory is cold when a step takes long, and it is the first launch that pays for it.
  static constexpr unsigned kMostAhead = 5;
  /// Of `started` runs that are not read, how many a loop leaves so.
  size_t leftUnread(size_t started) const { return !isDeferred() ? 0 : started < kMostAhead ? started : 1; }

  /// Milliseconds a run takes on the device when `runs` of them stand one behind the other on the same inputs. It runs
  /// them: states go on. Two runs before that are not counted.
  virtual llvm::Expected<double> timeRuns(llvm::StringRef function, llvm::ArrayRef<TensorView> inputs, unsigned runs,
                                          const ir::SymbolValues &symbols = {});

  /// The symbols that `inputs` fix in `function`, added to `symbols` and the compile options'.
  llvm::Expected<ir::SymbolValues> bindSymbols(llvm::StringRef function, llvm::ArrayRef<TensorView> inputs,
                                               const ir::SymbolValues &symbols = {}) const;
  /// Dtypes and shapes of the plain results of `function`; `data` is null.
  llvm::Expected<std::vector<TensorView>> resultTypes(llvm::StringRef function, const ir::SymbolValues &symbols) const;

  /// Params and states get their initial values (ir::initialValues), derived values are computed.
  virtual llvm::Error initialize(uint64_t seed) = 0;
  /// Raw elements of a persistent value, in the host's memory. Sizes must agree with persistentBytes().
  virtual llvm::Error readPersistent(llvm::StringRef name, llvm::MutableArrayRef<char> bytes) = 0;
  virtual llvm::Error writePersistent(llvm::StringRef name, llvm::ArrayRef<char> bytes) = 0;
  /// Bytes of persistent `name`, of its elements alone.
  llvm::Expected<int64_t> persistentBytes(llvm::StringRef name) const;
  /// Dtype and shape of persistent `name`; `data` is null.
  llvm::Expected<TensorView> persistentType(llvm::StringRef name) const;
  /// Computes derived values whose sources changed. run() does it as needed; call it to have the time now.
  virtual llvm::Error ensureDerived() = 0;

  /// The memory plan of a bucket: peak, arena and persistent bytes, and who needs what.
  virtual llvm::Expected<passes::MemoryPlan> plan(llvm::StringRef function, const ir::SymbolValues &symbols) = 0;
  /// The launch lists of all functions.
  virtual std::vector<KernelInfo> kernels() const = 0;
  /// Under CompileOptions::check: what made the first NaN or Inf so far.
  const std::optional<NonFiniteOp> &firstNonFinite() const { return firstNonFinite_; }
  llvm::ArrayRef<Fallback> fallbacks() const { return fallbacks_; }
  const CompileStats &compileStats() const { return compileStats_; }
  /// Those chosen so far, and those adopted.
  virtual GemmPlans gemmPlans() const { return {}; }
  /// Before the first run: these are used where their shape occurs, without measuring. Those of another device or
  /// library, and those the library refuses, are not; compileStats().notes says so.
  virtual void adoptGemmPlans(const GemmPlans &) {}
  /// How many buckets were planned so far. Decoding N tokens must not raise it.
  unsigned plansBuilt() const { return plansBuilt_; }
  /// Peak bytes of the largest bucket planned so far: its arena and all persistent values.
  int64_t peakBytes() const { return peakBytes_; }
  /// What the launch list of a bucket is made of. Plans the bucket where it has not run yet.
  virtual llvm::Expected<Description> describe(llvm::StringRef function, const ir::SymbolValues &symbols) = 0;
  /// Hands on the contents of steps in the runs from now on; none for an empty one.
  void captureSteps(StepCapture capture) { capture_ = std::move(capture); }
  /// Whether runs from now on keep the time of each step; at first CompileOptions::profile. Such runs are slower.
  void setProfiling(bool on) { options_.profile = on; }
  /// The steps of the last run that kept them.
  std::vector<StepTime> stepTimes() const { return times_; }
  /// Steps (kernels) of the function run last, and calls from the host to start them (1 for a CUDA graph).
  virtual unsigned kernelsPerRun() const = 0;
  virtual unsigned launchesPerRun() const { return kernelsPerRun(); }

protected:
  Program(std::unique_ptr<ir::Module> module, ir::Target target, CompileOptions options);
  llvm::Expected<const ir::Function *> function(llvm::StringRef name) const;
  llvm::Expected<const ir::Persistent *> persistent(llvm::StringRef name) const;
  /// `symbols`, and those of the compile options that are not among them.
  ir::SymbolValues withGiven(const ir::SymbolValues &symbols) const;
  /// `given` must be persistentBytes(name).
  llvm::Error checkSize(llvm::StringRef name, size_t given) const;
  llvm::Error checkOutputs(const ir::Function &function, llvm::ArrayRef<TensorView> outputs,
                           const ir::SymbolValues &symbols) const;
  /// Counts it once per place; under strict, or never twice, returns the error.
  llvm::Error addFallback(Fallback fallback);

  std::unique_ptr<ir::Module> module_;
  ir::Target target_;
  CompileOptions options_;
  std::vector<SliceBound> sliceBounds_; // checked at every run whose sizes are new
  std::vector<Fallback> fallbacks_;
  std::optional<NonFiniteOp> firstNonFinite_;
  std::vector<StepTime> times_;
  StepCapture capture_;
  CompileStats compileStats_;
  unsigned plansBuilt_ = 0;
  int64_t peakBytes_ = 0;

private:
  std::map<unsigned, std::vector<std::vector<char>>> unread_; // results of start() where it does all
  unsigned lastStarted_ = 0;
};

/// Compiles all functions of a fused module for `target`.
llvm::Expected<std::unique_ptr<Program>> compile(std::unique_ptr<ir::Module> fused, const ir::Target &target,
                                                 CompileOptions options = {});

} // namespace fusor::runtime
