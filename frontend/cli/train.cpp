// fusor train.
#include "frontend/cli/train.h"
#include "frontend/api/checkpoint.h"
#include "frontend/api/config_file.h"
#include "frontend/cli/interrupt.h"
#include "frontend/cli/load_module.h"
#include "frontend/cli/profile_table.h"
#include "frontend/cli/verbs.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Regex.h"
#include <cmath>

namespace fusor::frontend::cli {

llvm::json::Value jsonNumber(double value) {
  return std::isfinite(value) ? llvm::json::Value(value) : llvm::json::Value(nullptr);
}

namespace {

llvm::json::Object summaryJson(const TrainSummary &s, const TrainSettings &settings) {
  llvm::json::Object gemms;
  for (const auto &[type, count] : s.gemms) gemms[type] = count;
  llvm::json::Object object{{"final_loss", s.finalLoss ? jsonNumber(*s.finalLoss) : llvm::json::Value(nullptr)},
                            {"ms_per_step", s.msPerStep},
                            {"peak_bytes", s.peakBytes},
                            {"device", s.device},
                            {"precision", precisionName(settings)},
                            {"launches_per_step", s.launchesPerStep},
                            {"kernels", s.kernels},
                            {"compiled", s.compiled},
                            {"compile_ms", s.compileMs},
                            {"timed_gemms", s.timedGemms},
                            {"host_us_per_step", s.hostUsPerStep},
                            {"gemms", std::move(gemms)},
                            {"fallbacks", llvm::json::Array(s.fallbacks)},
                            {"step", s.lastStep},
                            {"interrupted", s.interrupted}};
  if (s.evalLoss) object["eval_loss"] = jsonNumber(*s.evalLoss);
  if (!s.fp8.empty()) {
    llvm::json::Object tensors;
    for (const Fp8State &tensor : s.fp8) {
      llvm::json::Array history;
      for (float amax : tensor.history) history.push_back(jsonNumber(amax));
      tensors[tensor.tensor] =
          llvm::json::Object{{"scale", jsonNumber(tensor.scale)}, {"amax_history", std::move(history)}};
    }
    object["fp8"] = std::move(tensors);
  }
  if (!s.fp8Stats.empty()) {
    llvm::json::Object tensors;
    for (const Fp8Stats &stats : s.fp8Stats)
      tensors[stats.tensor] =
          llvm::json::Object{{"clipped", jsonNumber(stats.clipped)}, {"underflow", jsonNumber(stats.underflow)}};
    object["fp8_stats"] = std::move(tensors);
  }
  if (settings.fp8 && settings.fp8->select == "auto") object["fp8_in_bf16"] = llvm::json::Array(s.layersInBf16);
  return object;
}

// One layer's scales and histories, and how many GEMMs ran in what.
void sayFp8(Console &console, const TrainSummary &s) {
  for (const Fp8State &tensor : s.fp8) {
    std::string history;
    size_t first = tensor.history.size() > 8 ? tensor.history.size() - 8 : 0; // the newest
    for (float amax : llvm::makeArrayRef(tensor.history).drop_front(first))
      history += llvm::formatv(" {0}", llvm::format("%g", amax));
    console.say(
        llvm::formatv("{0,-28} scale {1}, newest amaxes{2}", tensor.tensor, llvm::format("%g", tensor.scale), history)
            .str());
  }
  std::string gemms;
  for (const auto &[type, count] : s.gemms)
    gemms += (gemms.empty() ? "" : ", ") + std::to_string(count) + " in " + type;
  console.say("GEMMs of a step: " + gemms);
  for (const Fp8Stats &stats : s.fp8Stats)
    console.say(llvm::formatv("{0,-28} clipped {1:f3} %, underflow {2:f3} %", stats.tensor, 100 * stats.clipped,
                              100 * stats.underflow)
                    .str());
}

void saySummary(Console &console, const TrainSummary &s, const TrainSettings &settings) {
  for (const std::string &fallback : s.fallbacks) console.warning("fallback: " + fallback);
  if (!s.savedTo.empty()) console.say("checkpoint of step " + llvm::Twine(s.lastStep) + " in " + s.savedTo);
  if (settings.fp8) sayFp8(console, s);
  console.say(llvm::formatv("{0} on {1}: {2:f1} ms a step, {3} kernels in {4} launches, peak {5}",
                            precisionName(settings), s.device, s.msPerStep, s.kernels, s.launchesPerStep,
                            bytesText(s.peakBytes))
                  .str());
  if (s.profile) showProfile(console, *s.profile, s.msPerStep);
  if (s.evalLoss) console.result(llvm::formatv("eval_loss {0:f4}", *s.evalLoss).str());
  if (s.finalLoss) console.result(llvm::formatv("final loss {0:f4}", *s.finalLoss).str());
  console.object(summaryJson(s, settings));
}

/// Flags the passes do not know yet are refused, not ignored.
llvm::Error refuseWhatIsNotYet(const TrainOptions &o) {
  auto notYet = [](const llvm::Twine &what) {
    return failure(ErrorKind::usage, "{0} is not available yet", what.str());
  };
  if (o.recompute == "full") return notYet("--recompute " + o.recompute);
  return llvm::Error::success();
}

llvm::Error setFp8(TrainSettings &s, const TrainOptions &o) {
  static constexpr const char *kFlags[] = {"--fp8-trace",     "--fp8-format", "--amax-history", "--amax-algo",
                                           "--fp8-margin",    "--fp8-wgrad",  "--fp8-select",   "--fp8-skip-non-finite",
                                           "--fp8-calibrate", "--fp8-stats"};
  if (!s.fp8) {
    for (const char *flag : kFlags)
      if (o.isGiven(flag)) return failure(ErrorKind::usage, "{0} needs --precision fp8", flag);
    return llvm::Error::success();
  }
  auto isGiven = [&](const char *flag) { return o.resume.empty() || o.isGiven(flag); };
  if (isGiven("--fp8-format"))
    s.fp8->format = o.fp8Format == "e4m3" ? passes::Fp8Format::e4m3 : passes::Fp8Format::hybrid;
  if (isGiven("--amax-history")) s.fp8->amaxHistory = o.amaxHistory;
  if (isGiven("--amax-algo"))
    s.fp8->amaxAlgo = o.amaxAlgo == "max" ? passes::AmaxAlgo::max : passes::AmaxAlgo::mostRecent;
  if (isGiven("--fp8-margin")) s.fp8->margin = o.fp8Margin;
  if (isGiven("--fp8-wgrad")) s.fp8->wgrad = o.fp8Wgrad == "on";
  if (isGiven("--fp8-skip-non-finite")) s.fp8->skipNonFinite = o.fp8SkipNonFinite;
  if (isGiven("--fp8-calibrate")) s.fp8->calibrate = o.fp8Calibrate;
  if (isGiven("--fp8-select")) s.fp8->select = o.fp8Select, s.fp8->inBf16.reset();
  s.fp8Trace = o.fp8Trace, s.fp8Stats = o.fp8Stats;
  return llvm::Error::success();
}

llvm::Expected<TrainSettings> settingsOf(const CommonOptions &common, const TrainOptions &o) {
  if (auto error = refuseWhatIsNotYet(o)) return error;
  TrainSettings s;
  auto set = [&](const char *flag, auto &to, const auto &value) { // on a resume only what was written
    if (o.resume.empty() || o.isGiven(flag)) to = value;
  };
  if (!o.resume.empty()) {
    auto info = readCheckpointInfo(o.resume);
    if (!info) return info.takeError();
    if (auto error = fromCheckpointInfo(s, *info)) return error;
  }
  if (o.resume.empty() || o.isGiven("--config")) {
    auto config = loadConfig(o.config);
    if (!config) return config.takeError();
    llvm::json::Object wanted = toJson(*config), there = toJson(s.config);
    wanted.erase("vocab"), there.erase("vocab"); // a text changes it
    if (!o.resume.empty() && wanted != there)
      return inputError("--config {0} is not the configuration of the checkpoint '{1}': leave it out", o.config,
                        o.resume);
    if (o.resume.empty()) s.config = *config;
  }
  if (o.resume.empty() || o.isGiven("--precision")) {
    auto precision = parsePrecision(o.precision);
    if (!precision) return precision.takeError();
    s.precision = precision->dtype;
    if (!precision->fp8)
      s.fp8.reset();
    else if (!s.fp8)
      s.fp8.emplace(passes::DelayedScaling{.amaxHistory = o.amaxHistory});
  }
  s.configName = o.resume.empty() || o.isGiven("--config") ? o.config : "of " + o.resume;
  if (auto error = setFp8(s, o)) return error;
  s.steps = o.steps;
  set("--batch", s.batch, o.batch), set("--accumulate", s.accumulate, o.accumulate), set("--lr", s.lr, o.lr);
  set("--schedule", s.schedule, o.schedule == "cosine" ? Schedule::cosine : Schedule::constant);
  set("--warmup", s.warmup, o.warmup), set("--weight-decay", s.weightDecay, o.weightDecay);
  set("--no-decay", s.noDecay, o.noDecay), set("--clip-norm", s.clipNorm, o.clipNorm);
  set("--eval", s.heldPercent, o.evalPercent), set("--data", s.data, o.data), set("--seed", s.seed, common.seed);
  std::string problem;
  if (!s.noDecay.empty() && !llvm::Regex(s.noDecay).isValid(problem))
    return failure(ErrorKind::usage, "--no-decay: '{0}' is no regular expression: {1}", s.noDecay, problem);
  if (s.clipNorm && *s.clipNorm == 0) s.clipNorm.reset();
  if (o.saveEvery > 0 && o.save.empty()) return failure(ErrorKind::usage, "--save-every needs --save DIR");
  s.tokensFile = o.tokens, s.initFile = o.init, s.saveFolder = o.save, s.resumeFolder = o.resume;
  s.saveEvery = o.saveEvery, s.profile = o.profile;
  s.device = deviceSettings(common);
  s.device.deterministic = o.deterministic;
  return s;
}

} // namespace

llvm::Expected<TrainSummary> trainAndReport(Console &console, const TrainSettings &settings, Losses *losses) {
  InterruptFlag interrupt;
  Stopwatch watch;
  int64_t first = 0;
  auto onStep = [&](const StepReport &r) {
    if (first == 0) first = r.step;
    llvm::json::Object object{{"step", r.step}, {"loss", jsonNumber(r.loss)}, {"ms", r.ms}};
    std::string beside;
    if (losses) {
      losses->own.push_back(r.loss);
      if (losses->own.size() <= losses->bf16.size()) {
        double bf16 = losses->bf16[losses->own.size() - 1];
        object["bf16_loss"] = jsonNumber(bf16);
        beside = llvm::formatv(" (bf16 {0:f4})", bf16);
      }
    }
    console.object(std::move(object));
    double perSecond = static_cast<double>(r.tokens) / r.ms * 1000;
    std::string line = llvm::formatv("step {0,4}/{1}  loss {2:f4}{3}  {4:f1} ms  {5:f0} tokens/s", r.step, r.steps,
                                     r.loss, beside, r.ms, perSecond);
    if (!console.showsProgress()) return console.say(line);
    double eta = watch.ms() / static_cast<double>(r.step - first + 1) * static_cast<double>(r.steps - r.step);
    console.progress(r.step, r.steps, llvm::Twine(line) + llvm::formatv("  ETA {0:f0} s", eta / 1000).str());
  };
  auto onNote = [&](const llvm::Twine &text) { console.note(text); };
  auto onWarning = [&](const llvm::Twine &text) { console.warning(text); };
  auto summary = train(settings, {.step = onStep, .note = onNote, .warning = onWarning, .cancel = &interrupt.flag()});
  console.endProgress();
  if (!summary) return summary.takeError();
  saySummary(console, *summary, settings);
  if (summary->interrupted)
    console.warning("interrupted after step " + llvm::Twine(summary->lastStep) +
                    (summary->savedTo.empty() ? "; nothing was saved, as there was no --save"
                                              : "; go on with --resume " + summary->savedTo));
  return summary;
}

int train(const CommonOptions &common, const TrainOptions &options) {
  Console console(common);
  auto settings = settingsOf(common, options);
  if (!settings) return console.fail(settings.takeError());
  auto summary = trainAndReport(console, *settings);
  if (!summary) return console.fail(summary.takeError());
  return summary->interrupted ? static_cast<int>(ErrorKind::interrupted) : 0;
}

} // namespace fusor::frontend::cli
