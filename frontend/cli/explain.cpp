// fusor explain: what each pass decided, and why.
#include "frontend/api/compile_module.h"
#include "frontend/cli/load_module.h"
#include "frontend/cli/verbs.h"
#include <map>

namespace fusor::frontend::cli {
namespace {

/// Which algorithm of the library each product runs with on this GPU: chosen now, or known from earlier runs.
llvm::Error explainAlgorithms(Console &console, runtime::Program &program, const ir::SymbolValues &symbols,
                              const std::string &where) {
  for (const auto &function : program.module().functions()) {
    auto description = program.describe(function->name(), symbols);
    if (!description) return description.takeError();
    for (const runtime::DescribedStep &step : description->steps) {
      if (step.algorithm.empty()) continue;
      std::string made = step.op->resultCount() ? step.op->result(0).name().str() : "";
      console.object({{"kind", "algorithm"},
                      {"rule", "gemm"},
                      {"function", function->name()},
                      {"subject", "%" + made},
                      {"reason", step.algorithm}});
      console.result(llvm::formatv("algorithm gemm: {0}\n          @{1}: %{2}, on {3}", step.algorithm,
                                   function->name(), made, where)
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
  // Where a library multiplies, its algorithms are a program's: --dim leaves sizes open, they are train's batch then.
  bool compiles = common.device != "auto" && passOpts->target.kind == ir::DeviceKind::cuda &&
                  passOpts->target.hasCublasLt && (options.rule.empty() || options.rule == "gemm");
  constexpr int64_t kSize = 16;
  Compiled compiled;
  ir::SymbolValues symbols;
  std::string where;
  if (compiles) {
    auto device = chooseDevice(common.device, deviceSettings(common).tier);
    if (!device) return device.takeError();
    auto given = parseDims(options.dims, *loaded->module);
    if (!given) return given.takeError();
    symbols = *given;
    where = device->name + " with" + fillDims(symbols, *loaded->module, kSize);
    CompileRequest request(deviceSettings(common));
    request.pipeline = loaded->pipeline, request.passes = *passOpts;
    auto made = compileModule(std::move(loaded->module), *device, std::move(request));
    if (!made) return made.takeError();
    compiled = std::move(*made);
  } else {
    passes::PassContext context(*passOpts);
    if (auto error = passes::runPipeline(*loaded->module, loaded->pipeline, context)) return error;
    compiled.decisions = context.decisions().vec();
  }

  std::map<std::string, int> counts;
  bool found = false;
  for (const passes::Decision &d : compiled.decisions) {
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
  if (compiles)
    if (auto error = explainAlgorithms(console, *compiled.program, symbols, where)) return error;
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
