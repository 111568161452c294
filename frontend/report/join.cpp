#include "frontend/report/join.h"
#include "frontend/api/errors.h"
#include "frontend/report/graph.h"
#include "frontend/report/sections.h"
#include "ir/graph/names.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include <set>

namespace fusor::frontend {
namespace {

using llvm::StringRef;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

/// The two modules to show: what fusion was given, and what the last pass left.
struct ModulePair {
  std::string before, after; // files, empty where the folder has none
};

ModulePair modulesOf(const DumpFiles &folder) {
  ModulePair pair;
  std::string newest;
  bool fused = false;
  auto visit = [&](StringRef pass, StringRef file) {
    if (pass == "fusion" && !fused) pair.before = newest, fused = true;
    if (!file.empty()) newest = file.str();
  };
  if (folder.passes)
    for (const Value &entry : *folder.passes)
      visit(entry.getAsObject()->getString("pass").getValueOr(""),
            entry.getAsObject()->getString("file").getValueOr(""));
  else // "13_fusion.fir": by name
    for (StringRef file : folder.moduleFiles) visit(file.split('_').second.drop_back(StringRef(".fir").size()), file);
  // index.json speaks of passes; what came in is a file besides.
  if (fused && pair.before.empty() && !folder.moduleFiles.empty()) pair.before = folder.moduleFiles.front();
  pair.after = newest.empty() && !folder.moduleFiles.empty() ? folder.moduleFiles.back() : newest;
  return pair;
}

/// A function drawn, and where its values are made.
struct Drawn {
  std::string file, function;
  std::vector<GraphNode> nodes;
  llvm::StringMap<unsigned> byResult, byInner;

  /// The node that makes value `name`, at its door or inside; -1: none.
  int find(StringRef name) const {
    if (auto it = byResult.find(name); it != byResult.end()) return static_cast<int>(it->second);
    if (auto it = byInner.find(name); it != byInner.end()) return static_cast<int>(it->second);
    return -1;
  }
};

llvm::Expected<Drawn> draw(const DumpFiles &folder, const std::string &file) {
  Drawn drawn;
  drawn.file = file;
  if (file.empty()) return drawn;
  auto module = readModule(folder, file);
  if (!module) return module.takeError();
  if ((*module)->functions().empty()) return inputError("{0}/modules/{1}: no function in it", folder.path, file);
  StringRef wanted = folder.run.getString("function").getValueOr("");
  const ir::Function *function = wanted.empty() ? nullptr : (*module)->function(wanted);
  // Before the gradient pass there is no @train_step yet; the last function is what will become it.
  if (!function) function = (*module)->functions().back().get();
  drawn.function = function->name().str();
  drawn.nodes = graphOf(*function);
  for (unsigned i = 0; i < drawn.nodes.size(); ++i) {
    for (const std::string &name : drawn.nodes[i].results) drawn.byResult.try_emplace(name, i);
    for (const std::string &name : drawn.nodes[i].inner) drawn.byInner.try_emplace(name, i);
  }
  return drawn;
}

Object graphJson(const Drawn &drawn, const Drawn *after) {
  Array nodes;
  for (const GraphNode &node : drawn.nodes) {
    Object object = node.json();
    if (after)
      for (const std::string &name : node.results)
        if (int into = after->find(name); into >= 0 && !llvm::isDigit(name[0])) {
          object["after"] = into;
          if (node.layer.empty() && !after->nodes[into].layer.empty()) object["layer"] = after->nodes[into].layer;
          break;
        }
    nodes.push_back(std::move(object));
  }
  StringRef pass = StringRef(drawn.file).split('_').second;
  pass.consume_back(".fir");
  return Object{{"file", drawn.file}, {"pass", pass.str()}, {"function", drawn.function}, {"nodes", std::move(nodes)}};
}

/// Starts and durations of the launches of a step in trace.json (process 2), in order.
std::vector<std::pair<double, double>> startsOf(const DumpFiles &folder) {
  std::vector<std::pair<double, double>> starts;
  const Array *events = folder.trace ? folder.trace->getArray("traceEvents") : nullptr;
  if (!events) return starts;
  constexpr double kUsPerMs = 1000;
  for (const Value &event : *events) {
    const Object *object = event.getAsObject();
    if (!object || object->getString("ph").getValueOr("") != "X" || object->getInteger("pid").getValueOr(0) != 2 ||
        object->getString("cat").getValueOr("") == "idle")
      continue;
    if (auto start = object->getNumber("ts"))
      starts.push_back({*start / kUsPerMs, object->getNumber("dur").getValueOr(0) / kUsPerMs});
  }
  llvm::sort(starts);
  double first = starts.empty() ? 0 : starts.front().first; // compiling comes before
  for (auto &[start, ms] : starts) start -= first;
  return starts;
}

/// The node of the last module that a launch is part of: by what it writes; by its fusion's name, behind the node of
/// the launch before it, where it writes a workspace only. -1: none.
int nodeOfStep(const Object &step, const Drawn &after, int previous) {
  for (StringRef name : stringsOf(step, "writes"))
    if (auto it = after.byResult.find(name.ltrim("%@")); it != after.byResult.end())
      return static_cast<int>(it->second);
  StringRef fusion = step.getString("fusion").getValueOr("");
  if (auto op = step.getInteger("op"); op && *op >= 0) {
    size_t inputs = llvm::count_if(after.nodes, [](const GraphNode &node) { return node.kind == "input"; });
    size_t index = inputs + static_cast<size_t>(*op);
    if (index < after.nodes.size() && (fusion.empty() || after.nodes[index].name == fusion)) return index;
  }
  for (size_t i = std::max(previous, 0); i < after.nodes.size() && !fusion.empty(); ++i)
    if (after.nodes[i].name == fusion) return static_cast<int>(i);
  return -1;
}

/// Nodes whose names say no layer are of that which the dump gives their launches.
void addLayersOfSteps(const DumpFiles &folder, Drawn &after) {
  if (!folder.steps) return;
  int previous = -1;
  for (const Value &entry : *folder.steps) {
    int node = nodeOfStep(*entry.getAsObject(), after, previous);
    if (node < 0) continue;
    previous = node;
    auto layer = entry.getAsObject()->getString("layer");
    if (layer && after.nodes[node].layer.empty()) after.nodes[node].layer = layer->str();
  }
}

Array stepsJson(const DumpFiles &folder, const Drawn &after) {
  Array result;
  if (!folder.steps) return result;
  llvm::StringMap<size_t> kernels;
  for (size_t i = 0; i < folder.kernels.size(); ++i) kernels[folder.kernels[i].name] = i;
  auto starts = startsOf(folder);
  bool placed = starts.size() == folder.steps->size();
  int previous = -1;
  double end = 0;
  for (size_t index = 0; index < folder.steps->size(); ++index) {
    const Object &from = *(*folder.steps)[index].getAsObject();
    Object to = picked(from, {"name", "kind", "fusion", "layer", "fallback"},
                       {"op", "bytes", "flops", "ms", "roofline_percent"});
    for (const char *key : {"locations", "reads", "writes"}) {
      Array texts;
      for (std::string &text : stringsOf(from, key)) texts.push_back(std::move(text));
      to[key] = std::move(texts);
    }
    if (auto it = kernels.find(from.getString("kernel").getValueOr("")); it != kernels.end())
      to["kernel"] = static_cast<int64_t>(it->second);
    Array set;
    for (const std::string &name : stringsOf(from, "kernel_set"))
      if (auto it = kernels.find(name); it != kernels.end()) set.push_back(static_cast<int64_t>(it->second));
    if (!set.empty()) to["kernel_set"] = std::move(set);
    if (auto gemm = from.getInteger("gemm");
        gemm && *gemm >= 0 && folder.gemms && *gemm < static_cast<int64_t>(folder.gemms->size()))
      to["gemm"] = *gemm;
    int node = nodeOfStep(from, after, previous);
    if (node >= 0)
      to["node"] = node, previous = node;
    else
      to["ir"] = linesText(from, "ir"); // else it is the node's text
    if (placed) end = starts[index].first;
    if (auto ms = from.getNumber("ms")) {
      to["start_ms"] = end;
      end += *ms;
    }
    result.push_back(std::move(to));
  }
  return result;
}

Array decisionsJson(const DumpFiles &folder, const Drawn &before, const Drawn &after) {
  Array result;
  if (!folder.decisions) return result;
  for (const Value &entry : *folder.decisions) {
    const Object &from = *entry.getAsObject();
    Object to = picked(from, {"kind", "rule", "function", "subject", "location", "reason"}, {"bytes_saved"});
    std::set<int> old, now;
    StringRef function = from.getString("function").getValueOr("");
    for (const std::string &value : stringsOf(from, "values")) {
      const std::string name = ir::spelled('%', value).substr(1); // as nodes have it
      if (auto it = before.byResult.find(name); it != before.byResult.end()) old.insert(static_cast<int>(it->second));
      if (int node = after.find(name); node >= 0) now.insert(node);
    }
    // @forward became @train_step; @evaluate is another graph.
    bool isShown = function.empty() || function == after.function || function == "forward";
    if (isShown && !old.empty()) to["before"] = Array(std::vector<int>(old.begin(), old.end()));
    if (isShown && !now.empty()) to["after"] = Array(std::vector<int>(now.begin(), now.end()));
    result.push_back(std::move(to));
  }
  return result;
}

} // namespace

llvm::Expected<Object> pageData(const DumpFiles &folder) {
  ModulePair files = modulesOf(folder);
  auto before = draw(folder, files.before);
  if (!before) return before.takeError();
  auto after = draw(folder, files.after);
  if (!after) return after.takeError();

  addLayersOfSteps(folder, *after);
  Object data{{"run", runSection(folder)},          {"passes", passesSection(folder)},
              {"kernels", kernelsSection(folder)},  {"gemms", gemmsSection(folder)},
              {"memory", memorySection(folder)},    {"fp8", fp8Section(folder)},
              {"steps", stepsJson(folder, *after)}, {"decisions", decisionsJson(folder, *before, *after)}};
  data["graphs"] = Object{{"before", graphJson(*before, &*after)}, {"after", graphJson(*after, nullptr)}};
  Array has;
  for (auto [name, there] : {std::pair{"steps.json", folder.steps.has_value()},
                             {"gemms.json", folder.gemms.has_value()},
                             {"fusions.json", folder.decisions.has_value()},
                             {"plan.json", folder.plan.has_value()},
                             {"kernels", !folder.kernels.empty()},
                             {"fp8_trace.jsonl", folder.fp8Trace.has_value()},
                             {"fp8_stats.json", folder.fp8Stats.has_value()}})
    if (there) has.push_back(name);
  data["has"] = std::move(has);
  return data;
}

} // namespace fusor::frontend
