// fusor explain: what each pass decided, and why.
#include "frontend/cli/load_module.h"
#include "frontend/cli/verbs.h"
#include <map>

namespace fusor::frontend::cli {
namespace {

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
