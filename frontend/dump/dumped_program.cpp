#include "frontend/dump/dumped_program.h"
#include "ir/graph/layer_name.h"
#include "ir/graph/printer.h"
#include "ir/ops/op_def.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include <map>

namespace fusor::frontend {
namespace {

// The type that the products of `op` are computed in; empty where there are none.
std::string productType(const ir::Op &op) {
  if (op.body()) {
    for (const ir::Op &inner : op.body()->ops())
      if (std::string type = productType(inner); !type.empty()) return type;
    return "";
  }
  bool multiplies = op.def().lowering == ir::Lowering::contraction || op.def().lowering == ir::Lowering::attention;
  if (!multiplies) return "";
  ir::DType type = op.operand(0u).dtype();
  return ir::isFp8(type) ? "fp8" : ir::name(type).str();
}

std::string mostFrequentLayer(llvm::ArrayRef<ir::Value> values) {
  llvm::MapVector<llvm::StringRef, unsigned> counts;
  for (ir::Value value : values)
    if (llvm::StringRef layer = value ? ir::layerOfName(value.name()) : ""; !layer.empty()) ++counts[layer];
  auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto &a, const auto &b) { return a.second < b.second; });
  unsigned all = 0;
  for (const auto &[layer, count] : counts) all += count;
  return all > 0 && 2 * most->second > all ? most->first.str() : ""; // an optimizer's step is of no layer
}

std::string layerOf(const ir::Op &op) {
  std::string layer = mostFrequentLayer(op.results());
  if (!layer.empty()) return layer;
  llvm::SmallVector<ir::Value, 16> inside;
  if (op.body())
    for (const ir::Op &inner : op.body()->ops())
      for (ir::Value result : inner.results()) inside.push_back(result);
  layer = mostFrequentLayer(inside);
  return layer.empty() ? mostFrequentLayer(op.operands()) : layer;
}

} // namespace

std::vector<LaunchFacts> launchFacts(const DumpedProgram &dumped) {
  const runtime::Description &description = dumped.description;
  std::vector<LaunchFacts> facts(description.launches.size());
  bool areTimed = dumped.times.size() == facts.size();
  llvm::DenseSet<unsigned> seen;
  for (unsigned i = 0; i < facts.size(); ++i) {
    const runtime::DescribedLaunch &launch = description.launches[i];
    LaunchFacts &fact = facts[i];
    if (areTimed) fact.ms = dumped.times[i].ms;
    std::string type;
    if (launch.step == runtime::DescribedLaunch::kBehindAllSteps) {
      fact.bytes = 2 * static_cast<double>(launch.bytes);
    } else if (seen.insert(launch.step).second) {
      const runtime::DescribedStep &step = description.steps[launch.step];
      fact.bytes = static_cast<double>(step.bytes), fact.flops = step.flops;
      type = productType(*step.op);
    }
    const MeasuredRoofline &roofline = dumped.roofline;
    auto peak = roofline.flopsPerMs.find(type);
    if (!fact.ms || *fact.ms <= 0 || roofline.bytesPerMs <= 0 || fact.bytes <= 0) continue;
    if (fact.flops > 0 && peak == roofline.flopsPerMs.end()) continue; // that precision was not measured
    double leastMs = fact.bytes / roofline.bytesPerMs;
    if (fact.flops > 0) leastMs = std::max(leastMs, fact.flops / peak->second);
    fact.rooflinePercent = 100 * leastMs / *fact.ms;
  }
  return facts;
}

std::vector<std::string> layersOf(const runtime::Description &description) {
  std::vector<std::string> layers;
  for (const runtime::DescribedStep &step : description.steps) layers.push_back(layerOf(*step.op));
  auto isUnnamed = [](const ir::Op &op) {
    return llvm::all_of(op.results(), [](ir::Value v) { return llvm::all_of(v.name(), llvm::isDigit); });
  };
  for (size_t i = 1; i < layers.size(); ++i) {
    if (!layers[i].empty() || !isUnnamed(*description.steps[i].op)) continue;
    auto next = std::find_if(layers.begin() + i, layers.end(), [](const std::string &l) { return !l.empty(); });
    if (next != layers.end() && *next == layers[i - 1]) layers[i] = layers[i - 1];
  }
  return layers;
}

llvm::json::Array locationsOf(const ir::Op &op) {
  llvm::json::Array locations;
  llvm::StringSet<> seen;
  auto add = [&](const ir::Location &location) {
    if (location.known() && seen.insert(location.str()).second) locations.push_back(location.str());
  };
  if (op.body())
    for (const ir::Op &inner : op.body()->ops())
      if (!inner.def().isTerminator) add(inner.location());
  add(op.location());
  return locations;
}

std::string irOf(const ir::Op &op) {
  if (!op.body()) return ir::printOp(op) + "\n";
  std::string printed = ir::printBlock(*op.body(), 0);
  llvm::StringRef text = llvm::StringRef(printed).rtrim('\n');
  size_t yield = text.rfind('\n'); // the last line: what is written is in the list of writes
  return yield == llvm::StringRef::npos ? printed : text.take_front(yield + 1).str();
}

std::string jsonText(llvm::json::Value value) { return llvm::formatv("{0:2}\n", std::move(value)).str(); }

} // namespace fusor::frontend
