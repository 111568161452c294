#include "frontend/dump/dump.h"
#include "frontend/api/errors.h"
#include "frontend/bench/loop_timing.h"
#include "frontend/bench/median.h"
#include "frontend/dump/captured_step.h"
#include "frontend/dump/program_files.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/Regex.h"

namespace fusor::frontend {
namespace {

using runtime::DescribedKernel, runtime::Description;

llvm::Error writeKernels(const DumpFolder &folder, const DumpedProgram &dumped) {
  for (unsigned i = 0; i < dumped.description.kernels.size(); ++i) {
    const DescribedKernel &kernel = dumped.description.kernels[i];
    std::string place = "kernels/" + kernel.code.name + "/kernel";
    const std::string &ran = kernel.edited.empty() ? kernel.code.source : kernel.edited;
    if (auto error = folder.write(place + ".cu", ran)) return error;
    if (auto error = folder.write(place + ".original.cu", kernel.code.source)) return error;
    if (auto error = folder.write(place + ".json", jsonText(kernelJson(dumped, i)))) return error;
    if (!kernel.ptx.empty())
      if (auto error = folder.write(place + ".ptx", kernel.ptx)) return error;
    if (!kernel.cubin.empty())
      if (auto error = folder.write(place + ".cubin", kernel.cubin)) return error;
  }
  return llvm::Error::success();
}

// Runs the function once more and keeps what the first step of each chosen kernel reads and writes.
llvm::Error writeInputs(const DumpFolder &folder, runtime::Program &program, const Description &description,
                        const std::string &chosen, const DumpedRun &run) {
  llvm::Regex pattern(chosen); // valid: beginDump has looked
  llvm::SmallVector<llvm::SmallVector<unsigned, 2>, 0> kernelsOf(description.steps.size()); // that the step is kept for
  bool any = false;
  for (unsigned kernel = 0; kernel < description.kernels.size(); ++kernel) {
    if (!pattern.match(description.kernels[kernel].code.name)) continue;
    for (unsigned step = 0; step < description.steps.size(); ++step) {
      if (!llvm::is_contained(description.steps[step].kernels, kernel)) continue;
      kernelsOf[step].push_back(kernel), any = true;
      break;
    }
  }
  if (!any) {
    std::string names;
    for (const DescribedKernel &kernel : description.kernels) names += "\n  " + kernel.code.name;
    return inputError("--dump-inputs {0}: no kernel of @{1} has such a name; they are{2}", chosen,
                      description.function->name(), names);
  }
  auto stop = llvm::make_scope_exit([&] { program.captureSteps({}); });
  program.captureSteps({[&](unsigned step) { return !kernelsOf[step].empty(); },
                        [&](runtime::StepContent content) -> llvm::Error {
                          for (unsigned kernel : kernelsOf[content.step])
                            if (auto error = writeCapturedStep(folder, description, kernel, content)) return error;
                          return llvm::Error::success();
                        }});
  return program.run(run.function, run.inputs, run.outputs);
}

llvm::json::Object dumpJson(const Description &description, const runtime::Program &program, const DumpedRun &run,
                            const std::optional<StepProfile> &profile, double stepMs) {
  constexpr int kFormat = 1;
  llvm::json::Object symbols, flops;
  for (const auto &symbol : description.symbols) symbols[symbol.getKey()] = symbol.getValue();
  if (profile)
    for (const auto &[type, perMs] : profile->roofline.flopsPerMs) flops[type] = perMs;
  static constexpr const char *kTiers[] = {"simt", "sm80", "sm90a"};
  llvm::json::Object object{{"format", kFormat},
                            {"verb", run.verb},
                            {"function", run.function},
                            {"config", run.config},
                            {"precision", run.precision},
                            {"device", description.device},
                            {"arch", program.target().arch},
                            {"tier", kTiers[static_cast<unsigned>(program.target().tier)]},
                            {"symbols", std::move(symbols)},
                            {"peak_bytes", description.memory.peakBytes()},
                            {"launches_per_step", program.launchesPerRun()}};
  if (stepMs > 0) object["step_ms"] = stepMs;
  if (profile) {
    object["launches_ms"] = profile->launchesMs(), object["event_us"] = profile->eventUs;
    object["back_to_back_ms"] = profile->backToBackMs;
    if (stepMs > 0) object["idle_ms"] = std::max(0.0, stepMs - profile->backToBackMs);
    object["roofline"] = llvm::json::Object{
        {"bytes_per_ms", profile->roofline.bytesPerMs},
        {"flops_per_ms", std::move(flops)},
        {"source", "measured: a copy, and a square GEMM of each precision, after the run on the same device"}};
  }
  return object;
}

} // namespace

llvm::Expected<std::optional<DumpFolder>> beginDump(DeviceSettings &settings) {
  std::string problem;
  if (!settings.dumpInputs.empty()) {
    if (settings.dumpDir.empty()) return failure(ErrorKind::usage, "--dump-inputs needs --dump DIR");
    if (!llvm::Regex(settings.dumpInputs).isValid(problem))
      return failure(ErrorKind::usage, "--dump-inputs: '{0}' is no regular expression: {1}", settings.dumpInputs,
                     problem);
  }
  if (settings.dumpDir.empty()) return std::optional<DumpFolder>();
  auto folder = DumpFolder::create(settings.dumpDir);
  if (!folder) return folder.takeError();
  settings.dumpDir = folder->path();
  return std::optional<DumpFolder>(std::move(*folder));
}

llvm::Error dumpRun(const DumpFolder &folder, Compiled &compiled, const ChosenDevice &device,
                    const DeviceSettings &settings, const DumpedRun &run) {
  runtime::Program &program = *compiled.program;
  double stepMs = run.stepMs;
  if (stepMs <= 0 && !settings.check) {
    const bool runsAhead = program.isDeferred();
    auto times = bench::timeLoop(program, run.function, run.inputs, run.outputs, runsAhead ? 5 : 0, runsAhead ? 20 : 3);
    if (!times) return times.takeError();
    stepMs = meanOf(times->ms); // no median: a short run is read when those before it have been
  }
  std::optional<StepProfile> profile = run.profile;
  if (!profile && !settings.check) { // a checked run has no times worth keeping
    auto measured = profileStep(program, settings, device, run.function, run.inputs, run.outputs);
    if (!measured) return measured.takeError();
    profile = std::move(*measured);
  }
  auto symbols = program.bindSymbols(run.function, run.inputs);
  if (!symbols) return symbols.takeError();
  auto description = program.describe(run.function, *symbols);
  if (!description) return description.takeError();
  DumpedProgram dumped{.description = *description,
                       .decisions = compiled.decisions,
                       .precision = run.precision,
                       .isCpu = device.target.kind == ir::DeviceKind::cpu,
                       .facts = profile ? profile->facts : launchFacts(*description, {}, {})};
  std::vector<runtime::CompileSpan> spans = compiled.passSpans;
  llvm::append_range(spans, program.compileStats().spans);
  const ir::ValueNames names(description->function->block());
  if (auto error = writeKernels(folder, dumped)) return error;
  if (!settings.dumpInputs.empty())
    if (auto error = writeInputs(folder, program, *description, settings.dumpInputs, run)) return error;
  for (auto &[file, text] : {std::pair<const char *, std::string>{"steps.json", jsonText(stepsJson(dumped))},
                             {"gemms.json", jsonText(gemmsJson(dumped))},
                             {"plan.json", description->memory.json(names)},
                             {"trace.json", jsonText(traceJson(dumped, spans))},
                             {"dump.json", jsonText(dumpJson(*description, program, run, profile, stepMs))}})
    if (auto error = folder.write(file, text)) return error;
  return llvm::Error::success();
}

} // namespace fusor::frontend
