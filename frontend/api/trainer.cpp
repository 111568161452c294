#include "frontend/api/trainer.h"
#include "frontend/api/checkpoint.h"
#include "frontend/api/compile_module.h"
#include "frontend/api/data.h"
#include "frontend/api/errors.h"
#include "frontend/api/fp8_calibration.h"
#include "frontend/api/fp8_select.h"
#include "frontend/bench/median.h"
#include "frontend/check/check_files.h"
#include "frontend/check/rewrites.h"
#include "frontend/dump/dump.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include <chrono>
#include <cmath>
#include <deque>

namespace fusor::frontend {
namespace {

using Clock = std::chrono::steady_clock;
double msSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

constexpr llvm::StringLiteral kFp8TraceFile = "fp8_trace.jsonl"; // of a dump

/// A run's tokens, and what they say about the model and the length of the run.
struct RunData {
  std::unique_ptr<DataSource> training, held;
};

llvm::Expected<RunData> openData(TrainSettings &s) {
  if (s.heldPercent > 0 && !llvm::StringRef(s.data).startswith("text:"))
    return failure(ErrorKind::usage, "--eval holds out a part of a text: it needs --data text:FILE");
  if (!s.tokensFile.empty()) {
    auto tokens = tokensData(s.tokensFile);
    if (!tokens) return tokens.takeError();
    if (tokens->context != s.config.context)
      return inputError("'{0}' has sequences of {1} tokens, the configuration's context + 1 is {2}", s.tokensFile,
                        tokens->context + 1, s.config.context + 1);
    if (tokens->source->vocab() > s.config.vocab)
      return inputError("'{0}' has token {1}, the configuration's vocab is {2}", s.tokensFile,
                        tokens->source->vocab() - 1, s.config.vocab);
    s.batch = tokens->batch;
    if (!s.steps) s.steps = tokens->steps;
    return RunData{std::move(tokens->source), nullptr};
  }
  llvm::StringRef data = s.data;
  if (data == "synthetic") return RunData{syntheticData(s.seed, s.config.vocab), nullptr};
  if (!data.consume_front("text:") || data.empty())
    return failure(ErrorKind::usage, "--data must be synthetic or text:FILE, is '{0}'", s.data);
  s.config.vocab = 256; // bytes
  auto text = textData(data, s.seed, s.config.context, s.heldPercent);
  if (!text) return text.takeError();
  return RunData{std::move(text->training), std::move(text->held)};
}

/// GEMMs of @train_step by the dtype of their operands; fp8 and bf16 are there even when 0.
std::map<std::string, int> countGemms(const ir::Module &module) {
  std::map<std::string, int> counts{{"fp8", 0}, {"bf16", 0}};
  auto count = [&](auto &self, const ir::Block &block) -> void {
    for (const ir::Op &op : block.ops()) {
      if (op.body()) self(self, *op.body());
      if (op.def().lowering != ir::Lowering::contraction) continue;
      ir::DType dtype = op.operand(0u).dtype();
      ++counts[ir::isFp8(dtype) ? "fp8" : ir::name(dtype).str()];
    }
  };
  if (const ir::Function *step = module.function("train_step")) count(count, step->block());
  return counts;
}

/// One compiled run: the program, its buffers, and how a step and an evaluation go.
class Run {
public:
  Run(const TrainSettings &s, RunData data, Compiled compiled)
      : s_(s), data_(std::move(data)), compiled_(std::move(compiled)), rows_(s.batch / s.accumulate),
        tokens_(rows_ * s.config.context), targets_(tokens_.size()) {}

  runtime::Program &program() { return *compiled_.program; }
  /// Of a step, without the first ones where there are others: those plan, and build a graph.
  double hostUsPerStep() const {
    llvm::ArrayRef<double> all = hostMs_;
    return 1000 * meanOf(all.drop_front(all.size() > kFirstSteps ? kFirstSteps : 0));
  }

  static constexpr size_t kFirstSteps =
      runtime::Program::kMostAhead + 2; // a plan, and a graph for each piece of memory

  /// A step whose loss has been read.
  struct Done {
    int64_t step = 0;
    double loss = 0, ms = 0; // of this step alone: from the end of the step before, or from its start
  };

  using DoneSteps = llvm::SmallVector<Done, runtime::Program::kMostAhead>;

  /// Starts step 1, 2, ...; the device may still be at earlier ones. Those that were read meanwhile come back.
  llvm::Expected<DoneSteps> start(int64_t number) {
    auto begin = Clock::now();
    auto lr = static_cast<float>(learningRate(s_.schedule, s_.lr, number, s_.warmup, *s_.steps));
    if (lr != lr_) {
      if (auto error = program().writePersistent("optimizer.lr", {reinterpret_cast<char *>(&lr), sizeof(lr)}))
        return error;
      lr_ = lr;
    }
    DoneSteps done;
    double hostMs = msSince(begin); // without making the data
    for (int64_t micro = 0; micro < s_.accumulate; ++micro) {
      bool isLast = micro + 1 == s_.accumulate;
      const char *function = isLast ? "train_step" : "accumulate";
      runtime::TensorView batch[] = {view(tokens_, rows_), view(targets_, rows_)};
      begin = Clock::now();
      if (auto error = program().stage(function, batch)) return error;
      if (program().isDeferred()) hostMs += msSince(begin);
      fillBatch(*data_.training, (number - 1) * s_.batch + micro * rows_, rows_, s_.config.context,
                batch[0].elementsOf<int32_t>(), batch[1].elementsOf<int32_t>());
      begin = Clock::now();
      auto run = program().start(function, batch);
      if (!run) return run.takeError();
      if (program().isDeferred()) hostMs += msSince(begin);
      unread_.push_back({*run, number, isLast});
      size_t left = trace_ ? 0 : program().leftUnread(unread_.size()); // a trace reads the state before it changes
      if (auto error = readDownTo(left, done)) return error;
    }
    hostMs_.push_back(hostMs);
    return done;
  }
  /// Waits for all steps whose loss has not been read.
  llvm::Expected<DoneSteps> finish() {
    DoneSteps done;
    if (auto error = readDownTo(0, done)) return error;
    return done;
  }
  /// What was done since the last step is not a part of the next one's time.
  void restartClock() { since_ = Clock::now(); }
  /// Writes the FP8 state after each step.
  llvm::Error openTrace(llvm::StringRef path) {
    auto trace = Fp8Trace::open(path, program());
    if (!trace) return trace.takeError();
    trace_.emplace(std::move(*trace));
    return llvm::Error::success();
  }

  /// Counts what FP8 clips and loses.
  void countFp8() { stats_.emplace(program()); }
  llvm::ArrayRef<Fp8Stats> fp8Stats() const { return stats_ ? stats_->stats() : llvm::ArrayRef<Fp8Stats>(); }
  /// The scales that step `number` starts with, from its first micro-batch.
  llvm::Error calibrate(int64_t number, const ChosenDevice &device, CompileRequest request) {
    fillBatch(*data_.training, (number - 1) * s_.batch, rows_, s_.config.context, tokens_, targets_);
    return calibrateFp8(program(), nn::gptForward(s_.config), device, std::move(request), "train_step",
                        {view(tokens_, rows_), view(targets_, rows_)});
  }

  /// The mean loss over the part of the text that was held out, at most kEvalSequences of it.
  llvm::Expected<std::optional<double>> evaluate() {
    if (!data_.held) return std::optional<double>();
    constexpr int64_t kEvalSequences = 1024;
    int64_t count = std::min(*data_.held->count(), kEvalSequences);
    double sum = 0;
    for (int64_t first = 0; first < count; first += rows_) {
      int64_t rows = std::min(rows_, count - first);
      fillBatch(*data_.held, first, rows, s_.config.context, tokens_, targets_);
      float loss = 0;
      if (auto error =
              program().run("forward", {view(tokens_, rows), view(targets_, rows)}, {{ir::DType::f32, {}, &loss}}))
        return error;
      sum += static_cast<double>(loss) * static_cast<double>(rows);
    }
    return std::optional<double>(sum / static_cast<double>(count));
  }

  /// Values before and after passes, on the first sequence of step `number`.
  llvm::Error checkPasses(int64_t number, const ChosenDevice &device, CompileRequest request) {
    int64_t context = s_.config.context;
    fillBatch(*data_.training, (number - 1) * s_.batch, 1, context, tokens_, targets_);
    request.passes.target = device.target;
    RewriteCheck check{
        .load = [&]() -> llvm::Expected<std::unique_ptr<ir::Module>> { return nn::gptForward(s_.config); },
        .pipeline = request.pipeline,
        .options = request.passes,
        .function = "train_step",
        .inputs = {referenceTensor(view(tokens_, 1)), referenceTensor(view(targets_, 1))},
        .seed = s_.seed};
    return checkRewrites(check, s_.device.bisect);
  }

  /// Some more steps on the tokens at hand.
  llvm::Expected<StepProfile> profile(const ChosenDevice &device) {
    float loss = 0;
    llvm::SmallVector<runtime::TensorView, 1> results{{ir::DType::f32, {}, &loss}};
    addResults(results);
    return profileStep(program(), s_.device, device, "train_step", {view(tokens_, rows_), view(targets_, rows_)},
                       results);
  }

  /// `stepMs`: a step's time, 0 where it is to be measured.
  llvm::Error dump(const DumpFolder &folder, const ChosenDevice &device, double stepMs,
                   std::optional<StepProfile> profile) {
    float loss = 0;
    llvm::SmallVector<runtime::TensorView, 1> results{{ir::DType::f32, {}, &loss}};
    addResults(results);
    runtime::TensorView batch[] = {view(tokens_, rows_), view(targets_, rows_)};
    return dumpRun(folder, compiled_, device, s_.device,
                   {.verb = "train",
                    .config = s_.configName,
                    .precision = precisionName(s_),
                    .function = "train_step",
                    .inputs = batch,
                    .outputs = results,
                    .stepMs = stepMs,
                    .profile = std::move(profile)});
  }

private:
  /// A micro-batch that was started.
  struct Unread {
    unsigned run;
    int64_t step;
    bool isLast; // of its step
  };
  runtime::TensorView view(std::vector<int32_t> &data, int64_t rows) const {
    return {ir::DType::i32, {rows, s_.config.context}, data.data()};
  }
  void addResults(llvm::SmallVectorImpl<runtime::TensorView> &results) {
    if (trace_) trace_->addResults(results);
    if (stats_) stats_->addResults(results);
  }
  llvm::Error readDownTo(size_t left, DoneSteps &done) {
    while (unread_.size() > left)
      if (auto error = readOldest(done)) return error;
    return llvm::Error::success();
  }
  llvm::Error readOldest(DoneSteps &done) {
    Unread oldest = unread_.front();
    unread_.pop_front();
    float loss = 0;
    llvm::SmallVector<runtime::TensorView, 1> results{{ir::DType::f32, {}, &loss}};
    if (oldest.isLast) addResults(results);
    if (auto error = program().finish(oldest.run, results)) return error;
    sum_ += static_cast<double>(loss);
    if (!oldest.isLast) return llvm::Error::success();
    done.push_back({oldest.step, std::exchange(sum_, 0) / static_cast<double>(s_.accumulate), msSince(since_)});
    if (trace_)
      if (auto error = trace_->write(done.back().step, done.back().loss)) return error;
    restartClock();
    return llvm::Error::success();
  }

  const TrainSettings &s_;
  RunData data_;
  Compiled compiled_;
  int64_t rows_; // of a micro-batch
  std::vector<int32_t> tokens_, targets_;
  float lr_ = std::numeric_limits<float>::quiet_NaN();
  std::deque<Unread> unread_; // at most kMostAhead
  std::optional<Fp8Trace> trace_;
  std::optional<Fp8StatsReader> stats_;
  double sum_ = 0; // of the losses of the oldest unread step's micro-batches
  Clock::time_point since_ = Clock::now();
  std::vector<double> hostMs_; // of each step: what the host did while no step waited for it
};

// Histories of another length cannot be resumed: which of their values would count?
llvm::Error checkHistory(const TrainSettings &s, const llvm::json::Object &info) {
  const llvm::json::Object *recipe = info.getObject("recipe"), *saved = recipe ? recipe->getObject("fp8") : nullptr;
  if (!s.fp8 || !saved) return llvm::Error::success();
  int64_t length = fp8FromJson(*saved).amaxHistory;
  if (length == s.fp8->amaxHistory) return llvm::Error::success();
  return inputError(
      "the checkpoint '{0}' has amax histories of {1} steps, --amax-history is {2}: leave it out, or start "
      "a new run from its model.safetensors with --init",
      s.resumeFolder, length, s.fp8->amaxHistory);
}

// Sets which layers "auto" leaves in bf16, where no checkpoint says so already.
llvm::Error selectLayers(TrainSettings &s, const ChosenDevice &device, const TrainEvents &events) {
  if (!s.fp8 || s.fp8->select != "auto" || s.fp8->inBf16) return llvm::Error::success();
  if (s.device.deterministic && device.target.hasFp8)
    return failure(ErrorKind::usage, "--fp8-select auto measures, --deterministic measures nothing: give one of them");
  passes::PassOptions options;
  options.precision = s.precision, options.fp8 = s.fp8, options.target = device.target;
  ir::SymbolValues symbols;
  symbols["B"] = s.batch / s.accumulate;
  auto selection = selectFp8(*nn::gptForward(s.config), options, symbols, s.device, device);
  if (!selection) return selection.takeError();
  s.fp8->inBf16 = std::move(selection->inBf16);
  for (const std::string &note : selection->notes) events.note(note);
  return llvm::Error::success();
}

// fp8_trace.jsonl and fp8_stats.json of a dump. A trace that the user wanted elsewhere is copied.
llvm::Error dumpFp8(const DumpFolder &folder, const TrainSettings &s, llvm::ArrayRef<Fp8Stats> stats) {
  if (!s.fp8) return llvm::Error::success();
  if (!llvm::StringRef(s.fp8Trace).startswith(folder.path()))
    if (auto trace = llvm::MemoryBuffer::getFile(s.fp8Trace))
      if (auto error = folder.write(kFp8TraceFile, (*trace)->getBuffer())) return error;
  if (stats.empty()) return llvm::Error::success();
  llvm::json::Object tensors;
  for (const Fp8Stats &tensor : stats) {
    llvm::json::Object &entry = *(tensors[tensor.tensor] = llvm::json::Object()).getAsObject();
    if (std::isfinite(tensor.clipped)) entry["clipped"] = tensor.clipped;
    if (std::isfinite(tensor.underflow)) entry["underflow"] = tensor.underflow;
  }
  return folder.write("fp8_stats.json", llvm::formatv("{0:2}\n", llvm::json::Value(std::move(tensors))).str());
}

CompileRequest trainingRequest(const TrainSettings &s) {
  CompileRequest request(s.device);
  request.pipeline = passes::PipelineKind::train;
  request.passes.precision = s.precision;
  request.passes.fp8 = s.fp8;
  if (s.fp8) request.passes.fp8->returnAmax = !s.fp8Trace.empty(), request.passes.fp8->returnStats = s.fp8Stats;
  request.passes.accumulate = s.accumulate;
  request.passes.recompute = s.recompute;
  passes::AdamW &adamw = request.passes.optimizer;
  adamw.lr = s.lr, adamw.weightDecay = s.weightDecay, adamw.noDecay = s.noDecay, adamw.clipNorm = s.clipNorm;
  return request;
}

} // namespace

llvm::Expected<TrainSummary> train(const TrainSettings &given, const TrainEvents &events) {
  TrainSettings s = given;
  auto device = chooseDevice(s.device.device, s.device.tier);
  if (!device) return device.takeError();
  if (!device->note.empty()) events.note(device->note);
  auto dump = beginDump(s.device);
  if (!dump) return dump.takeError();
  if (*dump && s.fp8 && s.fp8Trace.empty()) s.fp8Trace = (*dump)->path() + "/" + kFp8TraceFile.str();
  auto data = openData(s);
  if (!data) return data.takeError();
  constexpr int64_t kDefaultSteps = 60;
  const int64_t steps = s.steps.value_or(kDefaultSteps);
  s.steps = steps;
  if (s.batch % s.accumulate)
    return inputError("--batch {0} must be a multiple of --accumulate {1}: each micro-batch has batch / accumulate "
                      "sequences",
                      s.batch, s.accumulate);
  int64_t start = 0;
  if (!s.resumeFolder.empty()) {
    auto info = readCheckpointInfo(s.resumeFolder);
    if (!info) return info.takeError();
    auto step = info->getInteger("step");
    if (!step || *step < 0) return inputError("{0}/checkpoint.json: has no \"step\"", s.resumeFolder);
    start = *step;
    if (auto error = checkHistory(s, *info)) return error;
  }
  if (auto count = data->training->count(); count && *count < steps * s.batch)
    return inputError("there are {0} sequences, {1} steps of {2} need {3}", *count, steps, s.batch, steps * s.batch);

  if (auto error = selectLayers(s, *device, events)) return error;
  auto compiled = compileModule(nn::gptForward(s.config), *device, trainingRequest(s));
  if (!compiled) return compiled.takeError();
  TrainSummary summary;
  summary.device = device->name, summary.compileMs = compiled->compileMs;
  summary.compiled = compiled->program->compileStats().compiled;
  summary.firstStep = start + 1, summary.lastStep = start;
  Run run(s, std::move(*data), std::move(*compiled));
  runtime::Program &program = run.program();
  size_t told = 0; // of the program's notes
  auto tellNotes = [&] {
    const auto &notes = program.compileStats().notes;
    for (; told < notes.size(); ++told) events.note(notes[told]);
  };
  tellNotes();
  if (auto error = program.initialize(s.seed)) return error;
  if (!s.initFile.empty())
    if (auto error = loadParameters(program, s.initFile)) return error;
  bool calibrates = s.fp8 && s.fp8->calibrate && s.resumeFolder.empty();
  if (!s.resumeFolder.empty()) {
    std::vector<std::string> missing;
    if (auto error = loadCheckpoint(program, s.resumeFolder, {}, &missing)) return error;
    size_t before = missing.size();
    llvm::erase_if(missing, isFp8State);
    if (missing.size() != before) {
      calibrates = s.fp8->calibrate;
      events.note(calibrates ? "the checkpoint has no FP8 state: scales are measured before the first step"
                             : "the checkpoint has no FP8 state: scales start at 1, and each step calibrates them from "
                               "its amaxes; --fp8-calibrate measures them before the first step");
    }
    for (const std::string &name : missing) events.note("'" + name + "' is not in the checkpoint: it starts anew");
    if (start >= steps)
      events.note(llvm::formatv("the checkpoint is at step {0} already, --steps {1}: nothing to train", start, steps));
  }
  auto save = [&](int64_t step) -> llvm::Error {
    if (s.saveFolder.empty()) return llvm::Error::success();
    summary.savedTo = s.saveFolder;
    return saveCheckpoint(program, s.saveFolder, checkpointInfo(s, step));
  };

  if (!s.fp8Trace.empty())
    if (auto error = run.openTrace(s.fp8Trace)) return error;
  if (s.fp8 && s.fp8Stats) run.countFp8();
  if (calibrates && start < steps) {
    if (auto error = run.calibrate(start + 1, *device, trainingRequest(s))) return error;
    events.note("FP8 scales measured on the data of step " + llvm::Twine(start + 1) + ", in bf16");
  }
  if (s.device.check)
    if (auto error = run.checkPasses(start + 1, *device, trainingRequest(s))) return error;
  std::vector<double> times;
  bool warned = false, saidNonFinite = false;
  int64_t saved = -1;
  auto report = [&](llvm::ArrayRef<Run::Done> all) {
    for (const Run::Done &done : all) {
      times.push_back(done.ms);
      summary.finalLoss = done.loss, summary.lastStep = done.step;
      events.step({done.step, steps, done.loss, done.ms, s.batch * s.config.context});
      if (std::isfinite(done.loss) || warned) continue;
      events.warning(
          llvm::formatv("the loss is not finite at step {0}: a smaller --lr or --clip-norm 1 may help", done.step));
      warned = true;
    }
  };
  auto finish = [&]() -> llvm::Error {
    auto done = run.finish();
    if (!done) return done.takeError();
    report(*done);
    return llvm::Error::success();
  };
  run.restartClock();
  for (int64_t step = start + 1; step <= steps; ++step) {
    if (events.cancel && *events.cancel) {
      summary.interrupted = true;
      break;
    }
    auto before = run.start(step);
    if (!before) return before.takeError();
    report(*before);
    tellNotes();
    if (program.firstNonFinite() && !saidNonFinite) {
      auto text = writeNonFinite(*program.firstNonFinite(), checkFolder(s.device.dumpDir));
      if (!text) return text.takeError();
      events.warning(*text);
      saidNonFinite = true;
    }
    if (s.saveEvery > 0 && step % s.saveEvery == 0) {
      if (auto error = finish()) return error;
      if (auto error = save(step)) return error;
      saved = step;
      run.restartClock();
    }
  }
  if (auto error = finish()) return error;
  if (saved != summary.lastStep)
    if (auto error = save(summary.lastStep)) return error;
  summary.launchesPerStep = program.launchesPerRun(), summary.kernels = program.kernelsPerRun();
  if (!summary.interrupted) {
    auto evaluated = run.evaluate();
    if (!evaluated) return evaluated.takeError();
    summary.evalLoss = *evaluated;
  }
  if (s.profile && !times.empty()) {
    auto profile = run.profile(*device);
    if (!profile) return profile.takeError();
    summary.profile = std::move(*profile);
  }
  summary.msPerStep = medianOf(times);
  if (*dump) {
    constexpr size_t kSettled = 10; // a GPU's first steps plan, time GEMMs and make graphs
    bool isSettled = times.size() >= (program.isDeferred() ? kSettled : 1);
    if (auto error = run.dump(**dump, *device, isSettled ? summary.msPerStep : 0, summary.profile)) return error;
    if (auto error = dumpFp8(**dump, s, run.fp8Stats())) return error;
    if (auto error = finishDump(**dump)) return error;
  }
  summary.hostUsPerStep = run.hostUsPerStep();
  summary.peakBytes = program.peakBytes(), summary.timedGemms = program.compileStats().timedGemms;
  summary.gemms = countGemms(program.module());
  auto fp8 = readFp8State(program, /*onlyFirstLayer=*/true);
  if (!fp8) return fp8.takeError();
  summary.fp8 = std::move(*fp8);
  if (s.fp8 && s.fp8->inBf16)
    for (const auto &entry : *s.fp8->inBf16) summary.layersInBf16.push_back(entry.first);
  if (!times.empty()) summary.fp8Stats = run.fp8Stats().vec();
  for (const runtime::Fallback &fallback : program.fallbacks())
    summary.fallbacks.push_back(fallback.where + ": " + fallback.reason);
  return summary;
}

} // namespace fusor::frontend
