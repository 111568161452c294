// fusor explain: what each pass decided, and why.
#include "frontend/api/compile_module.h"
#include "frontend/cli/load_module.h"
#include "frontend/cli/verbs.h"
#include <map>

namespace fusor::frontend::cli {
namespace {

/// Which algorithm of the library each product runs with on this GPU: chosen now, or known from earlier runs. A symbol
/// that --dim leaves open is 16, or as near as its range allows.
llvm::Error explainAlgorithms(Console &console, const CommonOptions &common, const ExplainOptions &options,
                              const passes::PassOptions &passOpts) {
  constexpr int64_t kSize = 16; // train's default batch
  auto device = chooseDevice(common.device, deviceSettings(common).tier);
  if (!device) return device.takeError();
  auto loaded = loadModule(options);
  if (!loaded) return loaded.takeError();
  auto symbols = parseDims(options.dims, *loaded->module);
  if (!symbols) return symbols.takeError();
  std::string sizes;
  for (const auto &[name, range] : loaded->module->symbols()) {
    symbols->try_emplace(name, std::clamp(kSize, range.low, range.high));
    sizes += " " + name + "=" + std::to_string((*symbols)[name]);
  }
  CompileRequest request(deviceSettings(common));
  request.pipeline = loaded->pipeline, request.passes = passOpts;
  auto compiled = compileModule(std::move(loaded->module), *device, std::move(request));
  if (!compiled) return compiled.takeError();
  for (const auto &function : compiled->program->module().functions()) {
    auto description = compiled->program->describe(function->name(), *symbols);
    if (!description) return description.takeError();
    for (const runtime::DescribedStep &step : description->steps) {
      if (step.algorithm.empty()) continue;
      std::string made = step.op->resultCount() ? step.op->result(0).name().str() : "";
      console.object({{"kind", "algorithm"},
                      {"rule", "gemm"},
                      {"function", function->name()},
                      {"subject", "%" + made},
                      {"reason", step.algorithm}});
      console.result(llvm::formatv("algorithm gemm: {0}\n          @{1}: %{2}, on {3} with{4}", step.algorithm,
                                   function->name(), made, device->name, sizes)
                         .str());
    }
  }
  return llvm::Error::success();
}

llvm::Error explainModule(Console &console, const CommonOptions &common, const ExplainOptions &options) {
  auto loaded = loadModule(options);
  if (!loaded) return loaded.takeError();
  auto passOpts = passOptions(common, options, *loaded->module, [&](const std::string &text) { console.note(text); });
  if (!passOpts) return passOpts.takeError();
  passOpts->explain = true;
  passes::PassContext context(*passOpts);
  if (auto error = passes::runPipeline(*loaded->module, loaded->pipeline, context)) return error;

  std::map<std::string, int> counts;
  bool found = false;
  for (const passes::Decision &d : context.decisions()) {
    ++counts[passes::name(d.kind).str()];
    if (!options.rule.empty() && d.rule != options.rule) continue;
    found = true;
    console.object({{"kind", passes::name(d.kind)},
                    {"rule", d.rule},
                    {"function", d.function},
                    {"subject", d.subject},
                    {"location", d.location.str()},
                    {"reason", d.reason},
                    {"bytes_saved", d.bytesSaved}});
    std::string saved = d.bytesSaved > 0 ? "; saves " + bytesText(d.bytesSaved) : "";
    console.result(llvm::formatv("{0,-9} {1}: {2}{3}\n          @{4}: {5}{6}", passes::name(d.kind), d.rule, d.reason,
                                 saved, d.function, d.subject,
                                 d.location.known() ? "   (" + d.location.str() + ")" : "")
                       .str());
  }
  if (!options.rule.empty() && !found) console.result("no decision of rule '" + options.rule + "' here");
  bool onGpu = common.device != "auto" && passOpts->target.kind == ir::DeviceKind::cuda;
  if (onGpu && passOpts->target.hasCublasLt && (options.rule.empty() || options.rule == "gemm"))
    if (auto error = explainAlgorithms(console, common, options, *passOpts)) return error;
  std::string summary;
  for (auto &[kind, count] : counts) summary += (summary.empty() ? "" : ", ") + std::to_string(count) + " " + kind;
  console.say("decisions: " + (summary.empty() ? "none" : summary));
  return llvm::Error::success();
}

} // namespace

int explain(const CommonOptions &common, const ExplainOptions &options) {
  Console console(common);
  return console.fail(explainModule(console, common, options));
}

} // namespace fusor::frontend::cli
