#include "passes/fp8/update.h"
#include "ir/graph/builder.h"
#include "passes/fp8/recipe.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::passes {
namespace {

using ir::Value;

struct Collected {
  Value scale, amax;
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
    auto [it, isNew] = tensors.insert({tensor, {op->operand(1), op->result(1), op->attr<ir::DType>("dtype")}});
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

void update(ir::Function &function, const DelayedScaling &recipe, bool accumulates) {
  ir::Builder b(function.block());
  b.setLocation(function.block().terminator()->location());
  auto entries = function.returns();
  llvm::SmallVector<ir::ReturnEntry, 8> amaxes;
  for (auto &[tensor, found] : collect(function, b)) {
    Value history = function.read(historyName(tensor)), amax = found.amax;
    if (accumulates && !found.ofParam)
      amax = b.op("max", {amax, b.op("reshape", {sliceOf(b, history, 0, 1)}, {{"shape", ir::Shape{}}})});
    ir::Op *op = b.make("amax_update", {history, found.scale, amax},
                        {{"algo", std::string(recipe.amaxAlgo == AmaxAlgo::max ? "max" : "most_recent")},
                         {"margin", recipe.margin},
                         {"dtype", found.dtype}});
    op->result(0).setName("new." + historyName(tensor));
    op->result(1).setName("new." + scaleName(tensor));
    std::string inverse = inverseOfScale(function.module(), scaleName(tensor));
    op->result(2).setName("new." + inverse);
    entries.push_back({ir::ReturnKind::update, historyName(tensor), op->result(0)});
    entries.push_back({ir::ReturnKind::update, scaleName(tensor), op->result(1)});
    entries.push_back({ir::ReturnKind::update, inverse, op->result(2)});
    if (!recipe.returnAmax) continue;
    amax.setName("amax." + tensor);
    amaxes.push_back({ir::ReturnKind::result, "", amax});
  }
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
  if (!options.fp8 || !step) return false;
  bool accumulates = options.accumulate > 1 && accumulate;
  update(*step, *options.fp8, accumulates);
  if (accumulates) keepLargest(*accumulate, options.fp8->amaxHistory);
  return true;
}

} // namespace fusor::passes
