// fusor import: what an ONNX model holds, and everything in it that cannot be read.
#include "frontend/onnx/import.h"
#include "frontend/cli/console.h"
#include "frontend/cli/verbs.h"
#include "ir/ops/families.h"
#include "passes/pipeline.h"
#include "runtime/checkpoint/atomic_file.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::frontend::cli {
namespace {

std::string counted(const std::map<std::string, unsigned> &counts) {
  std::string text;
  for (const auto &[name, count] : counts) text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + name;
  return text;
}

/// Ops that kernels are made for, as the module has them now: whatever wrote them.
std::map<std::string, unsigned> bigOps(const ir::Function &function) {
  static constexpr const char *kFamilies[] = {"contraction", "normalization", "attention"};
  std::map<std::string, unsigned> counts;
  for (const ir::Op &op : function.block().ops()) {
    bool isBig = op.is("gelu") || op.is("silu");
    for (const ir::Family &family : ir::allFamilies())
      isBig |= llvm::is_contained(kFamilies, llvm::StringRef(family.name)) && &op.def() >= family.ops.begin() &&
               &op.def() < family.ops.end();
    if (isBig) ++counts[op.name().str()];
  }
  return counts;
}

/// What simplify and lift make of the module, which they change: how many big ops of each kind, and what stays in small
/// ones, with why.
struct LiftReport {
  std::map<std::string, unsigned> bigOps;
  std::map<std::string, unsigned> lifted;
  struct Refused {
    std::string why, subject; // "gelu: tanh of ..."
  };
  std::vector<Refused> refused;
};

llvm::Expected<LiftReport> liftedOf(ir::Module &module) {
  passes::PassOptions options;
  options.explain = true;
  passes::PassContext context(options);
  if (auto error = passes::runPasses(module, {"simplify", "lift"}, context)) return error;
  LiftReport report;
  report.bigOps = bigOps(*module.function("forward"));
  for (const passes::Decision &d : context.decisions()) {
    llvm::StringRef family = d.rule;
    if (!family.consume_front("lift-")) continue;
    if (d.kind == passes::Decision::Kind::taken)
      ++report.lifted[d.reason];
    else
      report.refused.push_back({(family + ": " + d.reason).str(), d.subject});
  }
  return report;
}

llvm::Error importAndPrint(Console &console, const ImportOptions &options) {
  auto imported = onnx::importModel(options.file);
  if (!imported) return imported.takeError();
  for (const std::string &warning : imported->warnings) console.warning(warning);
  const ir::Function &function = *imported->module->function("forward");
  llvm::json::Object opsets, nodes;
  std::string opsetText;
  for (const auto &[domain, version] : imported->opsets) {
    opsets[domain] = version;
    opsetText += (opsetText.empty() ? "" : ", ") + domain + " " + std::to_string(version);
  }
  for (const auto &[name, count] : imported->nodes) nodes[name] = count;
  console.say(llvm::formatv("read      IR version {0}, {1}{2}", imported->irVersion, opsetText,
                            imported->producer.empty() ? "" : ", made by " + imported->producer)
                  .str());
  console.say("nodes     " + counted(imported->nodes));
  console.say(
      llvm::formatv("constants {0} initializers, {1}", imported->constants, bytesText(imported->constantBytes)).str());
  llvm::json::Array inputs, outputs;
  for (ir::Value argument : function.block().arguments()) {
    console.say("input     %" + argument.name() + " : " + argument.type().str());
    inputs.push_back(argument.name().str() + " : " + argument.type().str());
  }
  auto returns = function.returns();
  for (unsigned i = 0; i < returns.size(); ++i) {
    std::string text = imported->outputs[i] + " : " + returns[i].value.type().str();
    console.say("output    %" + text);
    outputs.push_back(text);
  }
  for (const auto &[name, range] : imported->module->symbols())
    console.say(llvm::formatv("size      {0} in {1}..{2}", name, range.low, range.high).str());
  // Where the module is written it stays as it was read; else its weights are transposed in place of being copied.
  auto copy = options.output.empty() ? nullptr : imported->module->clone();
  const auto ops = static_cast<int64_t>(function.block().ops().size());
  auto lifts = liftedOf(copy ? *copy : *imported->module);
  if (!lifts) return lifts.takeError();
  llvm::json::Object lifted;
  llvm::json::Array refused;
  for (const auto &[name, count] : lifts->lifted) lifted[name] = count;
  console.say("lifted    " + (lifts->lifted.empty() ? "nothing" : counted(lifts->lifted)));
  llvm::json::Object big;
  for (const auto &[name, count] : lifts->bigOps) big[name] = count;
  console.say("big ops   " + (lifts->bigOps.empty() ? "none" : counted(lifts->bigOps)));
  for (const LiftReport::Refused &r : lifts->refused) {
    console.say("refused   " + r.why + "\n          at " + r.subject);
    refused.push_back(r.why);
  }
  console.object({{"file", options.file},
                  {"ir_version", imported->irVersion},
                  {"opsets", std::move(opsets)},
                  {"nodes", std::move(nodes)},
                  {"initializers", imported->constants},
                  {"constant_bytes", imported->constantBytes},
                  {"ops", ops},
                  {"lifted", std::move(lifted)},
                  {"big_ops", std::move(big)},
                  {"refused", std::move(refused)},
                  {"inputs", std::move(inputs)},
                  {"outputs", std::move(outputs)}});
  if (options.output.empty()) return llvm::Error::success();
  auto file = runtime::AtomicFile::create(options.output);
  if (!file) return file.takeError();
  if (auto error = file->write(imported->module->str())) return error;
  return file->commit();
}

} // namespace

int importModel(const CommonOptions &common, const ImportOptions &options) {
  Console console(common);
  return console.fail(importAndPrint(console, options));
}

} // namespace fusor::frontend::cli
