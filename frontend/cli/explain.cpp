// fusor explain: what each pass decided, and why; what is worth most comes first.
#include "frontend/api/compile_module.h"
#include "frontend/cli/load_module.h"
#include "frontend/cli/verbs.h"
#include "frontend/dump/module_files.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <map>
#include <set>

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

/// "--rule lift" is about "lift-gelu" too.
bool isAskedFor(llvm::StringRef asked, llvm::StringRef rule) {
  return asked.empty() || (rule.consume_front(asked) && (rule.empty() || rule.startswith("-")));
}

/// What it saves, or would: refused and fallback were not done.
std::string worthText(const passes::Decision &d) {
  if (d.bytesSaved <= 0) return "";
  return (d.kind == passes::Decision::Kind::taken ? "; saves " : "; would save ") + bytesText(d.bytesSaved);
}

void explainDecisions(Console &console, llvm::ArrayRef<passes::Decision> decisions, const std::string &rule) {
  std::set<std::string> others;
  bool found = false;
  for (const passes::Decision *d : passes::byWorth(decisions)) {
    others.insert(d->rule);
    if (!isAskedFor(rule, d->rule)) continue;
    found = true;
    console.object(decisionJson(*d));
    console.result(llvm::formatv("{0,-9} {1}: {2}{3}\n          @{4}: {5}{6}", passes::name(d->kind), d->rule,
                                 d->reason, worthText(*d), d->function, d->subject,
                                 d->location.known() ? "   (" + d->location.str() + ")" : "")
                       .str());
  }
  if (!rule.empty() && !found)
    console.result("no decision of rule '" + rule + "' here" +
                   (others.empty() ? "" : "; there are some of " + llvm::join(others, ", ")));
}

llvm::Error explainModule(Console &console, const CommonOptions &common, const ExplainOptions &options) {
  auto loaded = loadModule(options);
  if (!loaded) return loaded.takeError();
  auto passOpts = passOptions(common, options, *loaded->module, [&](const std::string &text) { console.note(text); });
  if (!passOpts) return passOpts.takeError();
  passOpts->explain = true;
  auto symbols = parseDims(options.dims, *loaded->module);
  if (!symbols) return symbols.takeError();
  const std::string sizes = fillDims(*symbols, *loaded->module, kDecisionSize);
  passOpts->sizes = *symbols;
  // Where a library multiplies, its algorithms are a program's.
  bool compiles = common.device != "auto" && passOpts->target.kind == ir::DeviceKind::cuda &&
                  passOpts->target.hasCublasLt && (options.rule.empty() || options.rule == "gemm");
  Compiled compiled;
  std::string where;
  if (compiles) {
    auto device = chooseDevice(common.device, deviceSettings(common).tier);
    if (!device) return device.takeError();
    where = device->name + " with" + sizes;
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

  explainDecisions(console, compiled.decisions, options.rule);
  if (compiles)
    if (auto error = explainAlgorithms(console, *compiled.program, *symbols, where)) return error;
  std::map<std::string, int> counts;
  for (const passes::Decision &d : compiled.decisions) ++counts[passes::name(d.kind).str()];
  std::string summary;
  for (auto &[kind, count] : counts) summary += (summary.empty() ? "" : ", ") + std::to_string(count) + " " + kind;
  console.say("decisions: " + (summary.empty() ? "none" : summary) + (sizes.empty() ? "" : "; bytes at" + sizes));
  return llvm::Error::success();
}

} // namespace

int explain(const CommonOptions &common, const ExplainOptions &options) {
  Console console(common);
  return console.fail(explainModule(console, common, options));
}

} // namespace fusor::frontend::cli
