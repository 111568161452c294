#include "passes/fp8/update.h"
#include "ir/graph/builder.h"
#include "passes/fp8/recipe.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include <array>
#include <numeric>

namespace fusor::passes {
namespace {

using ir::Value;

struct Collected {
  Value tensor, scale, amax; // `tensor`: the first one of that scale
  ir::DType dtype;
  bool ofParam = false; // the same in each micro-batch
};
using CollectedByTensor = llvm::MapVector<std::string, Collected, std::map<std::string, unsigned>>;

// The amax of each tensor whose scale is a state with a history that `function` does not update itself.
CollectedByTensor collect(ir::Function &function, ir::Builder &b) {
  CollectedByTensor tensors;
  auto entries = function.returns();
  for (ir::Op *op : function.block().opPointers()) {
    if (!op->is("quantize") || !op->operand(1).isPersistent()) continue;
    std::string tensor = tensorOf(op->operand(1).name()).str();
    bool isUpdated = llvm::any_of(entries, [&](const ir::ReturnEntry &e) { return e.name == op->operand(1).name(); });
    if (tensor.empty() || isUpdated || !function.module().persistent(historyName(tensor))) continue;
    auto [it, isNew] =
        tensors.insert({tensor, {op->operand(0u), op->operand(1), op->result(1), op->attr<ir::DType>("dtype")}});
    if (!isNew) it->second.amax = b.op("max", {it->second.amax, op->result(1)});
    it->second.ofParam = op->operand(0u).isPersistent();
  }
  return tensors;
}

Value sliceOf(ir::Builder &b, Value history, int64_t from, int64_t to) {
  return b.op("slice", {history}, {{"start", ir::Shape{from}}, {"size", ir::Shape{to - from}}});
}

void keepLargest(ir::Function &function, int64_t length) {
  ir::Builder b(function.block());
  b.setLocation(function.block().terminator()->location());
  auto entries = function.returns();
  for (auto &[tensor, found] : collect(function, b)) {
    if (found.ofParam) continue;
    Value history = function.read(historyName(tensor));
    Value amax = b.op("reshape", {found.amax}, {{"shape", ir::Shape{1}}});
    Value next = b.op("max", {sliceOf(b, history, 0, 1), amax});
    if (length > 1) next = b.op("concat", {next, sliceOf(b, history, 1, length)}, {{"axis", int64_t(0)}});
    entries.push_back({ir::ReturnKind::update, historyName(tensor), next});
  }
  function.setReturns(entries, function.block().terminator()->location());
}

// Up to there a magnitude rounds to the largest value, and up to here to 0 (halves of a step: to even).
double roundsToLargest(ir::DType dtype) { return dtype == ir::DType::f8e5m2 ? 61439.99609375 : 464; }
double roundsToZero(ir::DType dtype) { return dtype == ir::DType::f8e5m2 ? 0x1p-17 : 0x1p-10; }

// The parts of a tensor that FP8 cannot hold: too large, and not 0 but too small.
std::array<Value, 2> statsOf(ir::Builder &b, const std::string &name, const Collected &found) {
  Value x = b.cast(found.tensor, ir::DType::f32), zero = b.constant(0), one = b.constant(1);
  Value size = b.op("abs", {b.op("mul", {x, found.scale})});
  Value isClipped = b.op("gt", {size, b.constant(roundsToLargest(found.dtype))});
  Value isLost = b.op("and", {b.op("ne", {x, zero}), b.op("le", {size, b.constant(roundsToZero(found.dtype))})});
  std::vector<int64_t> all(x.rank());
  std::iota(all.begin(), all.end(), 0);
  std::array<Value, 2> stats{isClipped, isLost};
  for (Value &value : stats) value = b.op("mean", {b.op("select", {value, one, zero})}, {{"dims", all}});
  stats[0].setName("clipped." + name), stats[1].setName("underflow." + name);
  return stats;
}

void update(ir::Function &function, const DelayedScaling &recipe, bool accumulates) {
  ir::Builder b(function.block());
  b.setLocation(function.block().terminator()->location());
  auto entries = function.returns();
  llvm::SmallVector<ir::ReturnEntry, 8> amaxes, stats;
  std::string algo = recipe.amaxAlgo == AmaxAlgo::max ? "max" : "most_recent";
  if (recipe.skipNonFinite) algo += "_finite";
  for (auto &[tensor, found] : collect(function, b)) {
    Value history = function.read(historyName(tensor)), amax = found.amax;
    if (accumulates && !found.ofParam)
      amax = b.op("max", {amax, b.op("reshape", {sliceOf(b, history, 0, 1)}, {{"shape", ir::Shape{}}})});
    ir::Op *op = b.make("amax_update", {history, found.scale, amax},
                        {{"algo", algo}, {"margin", recipe.margin}, {"dtype", found.dtype}});
    op->result(0).setName("new." + historyName(tensor));
    op->result(1).setName("new." + scaleName(tensor));
    std::string inverse = inverseOfScale(function.module(), scaleName(tensor));
    op->result(2).setName("new." + inverse);
    entries.push_back({ir::ReturnKind::update, historyName(tensor), op->result(0)});
    entries.push_back({ir::ReturnKind::update, scaleName(tensor), op->result(1)});
    entries.push_back({ir::ReturnKind::update, inverse, op->result(2)});
    if (recipe.returnStats)
      for (Value value : statsOf(b, tensor, found)) stats.push_back({ir::ReturnKind::result, "", value});
    if (!recipe.returnAmax) continue;
    amax.setName("amax." + tensor);
    amaxes.push_back({ir::ReturnKind::result, "", amax});
  }
  amaxes.append(stats);
  if (!amaxes.empty()) { // inserting nothing would move each entry onto itself, which empties its name
    auto firstUpdate = llvm::find_if(entries, [](auto &entry) { return entry.kind != ir::ReturnKind::result; });
    entries.insert(firstUpdate, amaxes.begin(), amaxes.end()); // results stand before updates
  }
  function.setReturns(entries, function.block().terminator()->location());
}

} // namespace

llvm::Expected<bool> fp8Update(ir::Module &module, PassContext &context) {
  const PassOptions &options = context.options();
  ir::Function *step = module.function("train_step"), *accumulate = module.function("accumulate");
  if (!options.fp8) return false;
  if (!step && options.fp8->measureOnly)
    for (const auto &function : module.functions()) update(*function, *options.fp8, false);
  if (!step) return options.fp8->measureOnly;
  bool accumulates = options.accumulate > 1 && accumulate;
  update(*step, *options.fp8, accumulates);
  if (accumulates) keepLargest(*accumulate, options.fp8->amaxHistory);
  return true;
}

} // namespace fusor::passes
