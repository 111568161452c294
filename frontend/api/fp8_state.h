// A program's delayed-scaling state: as numbers, as a trace file, and the recipe as JSON.
#pragma once
#include "passes/options.h"
#include "runtime/execute/program.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace fusor::frontend {

/// The "recipe"."fp8" of a checkpoint.json.
llvm::json::Object toJson(const passes::DelayedScaling &recipe);
/// What is missing keeps its default.
passes::DelayedScaling fp8FromJson(const llvm::json::Object &object);

/// One tensor's state. The history in Transformer Engine's order: index 0 is being collected, the newest value is last.
struct Fp8State {
  std::string tensor; // "blocks.0.qkv.input"
  float scale = 1;
  std::vector<float> history;
};
/// Of the tensors whose scales @train_step updates, in that order; perhaps only those of the first one's layer.
llvm::Expected<std::vector<Fp8State>> readFp8State(runtime::Program &program, bool onlyFirstLayer = false);

/// Which parts of a tensor's elements FP8 could not hold in a step: too large, and not 0 but too small.
struct Fp8Stats {
  std::string tensor;
  float clipped = 0, underflow = 0;
};
/// Reads them where @train_step returns them (DelayedScaling::returnStats).
class Fp8StatsReader {
public:
  explicit Fp8StatsReader(const runtime::Program &program);
  /// Adds a view for each number that @train_step returns behind its loss and the trace's amaxes.
  void addResults(llvm::SmallVectorImpl<runtime::TensorView> &results);
  /// Of the step whose results were filled last.
  llvm::ArrayRef<Fp8Stats> stats() const { return stats_; }

private:
  std::vector<Fp8Stats> stats_;
};

/// --fp8-trace: a JSON line a step,
///   {"step":1,"loss":4.6,"state":{"blocks.0.qkv.input":{"amax":3.1,"scale":144.5,"amax_history":[0,...,3.1]},...}}
/// The program's @train_step must return the amaxes (DelayedScaling::returnAmax).
class Fp8Trace {
public:
  static llvm::Expected<Fp8Trace> open(llvm::StringRef path, runtime::Program &program);
  /// Adds a view for each amax that @train_step returns behind its loss.
  void addResults(llvm::SmallVectorImpl<runtime::TensorView> &results);
  /// After the results were filled, and before another step starts.
  llvm::Error write(int64_t step, double loss);

private:
  explicit Fp8Trace(runtime::Program &program) : program_(&program) {}
  runtime::Program *program_;
  std::string path_;
  std::unique_ptr<llvm::raw_fd_ostream> out_;
  std::vector<float> amaxes_;
};

} // namespace fusor::frontend
