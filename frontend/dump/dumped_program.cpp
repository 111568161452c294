#include "frontend/dump/dumped_program.h"
#include "ir/graph/layer_name.h"
#include "ir/graph/printer.h"
#include "ir/ops/op_def.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

namespace fusor::frontend {
namespace {

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
