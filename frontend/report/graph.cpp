#include "frontend/report/graph.h"
#include "ir/graph/layer_name.h"
#include "ir/graph/printer.h"
#include "ir/ops/op_def.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include <map>

namespace fusor::frontend {
namespace {

using llvm::StringRef;

bool isNumber(StringRef part) { return !part.empty() && llvm::all_of(part, llvm::isDigit); }

/// `visit` on each op of a fusion's body, or on the op itself.
void forEachPart(const ir::Op &op, llvm::function_ref<void(const ir::Op &)> visit) {
  if (!op.body()) return visit(op);
  for (const ir::Op &part : op.body()->ops())
    if (!part.def().isTerminator) visit(part);
}

/// A name that says something: ONNX models call values "61".
bool saysSomething(StringRef name) { return !name.empty() && !isNumber(name); }

/// What a layer is decided by: most of the names that an op makes, in it and out of it; where they are of none, what it
/// reads of the module.
std::string layerOfOp(const ir::Op &op) {
  std::map<std::string, unsigned> made, read;
  auto vote = [&](const ir::Op &part) {
    for (ir::Value result : part.results())
      if (saysSomething(result.name())) ++made[ir::layerOfName(result.name()).str()];
  };
  vote(op);
  if (op.body())
    for (const ir::Op &part : op.body()->ops()) vote(part);
  for (ir::Value operand : op.operands())
    if (operand && operand.isPersistent()) ++read[ir::layerOfName(operand.name()).str()];
  for (auto *votes : {&made, &read}) {
    if (votes == &read && !made.empty()) break;
    if (votes->size() > 3) return ""; // a multi-tensor fusion of every layer is of none
    std::string best;
    unsigned most = 0;
    for (const auto &[layer, count] : *votes)
      if (count > most) best = layer, most = count;
    if (!best.empty()) return best;
  }
  return "";
}

bool isMultiTensor(const ir::Op &op) {
  bool found = false;
  forEachPart(op, [&](const ir::Op &part) { found |= part.def().lowering == ir::Lowering::multiTensor; });
  return found;
}

/// Phases of a function's ops, in order.
class Phases {
public:
  explicit Phases(const ir::Function &function) {
    for (const ir::Op &op : function.block().ops()) order_.push_back(&op);
    for (const ir::Op *op : order_)
      if (isMultiTensor(*op)) optimizer_[op] = true;
    if (optimizer_.empty() && !hasGradients(function)) {
      lossIndex_ = order_.size();
      return;
    }
    const auto returns = function.returns();
    for (const ir::ReturnEntry &entry : returns)
      if (entry.kind == ir::ReturnKind::result && entry.value.op()) {
        lossIndex_ = llvm::find(order_, entry.value.op()) - order_.begin();
        break;
      }
    // The step's number, a schedule: backwards from what reads them.
    findBatchReaders();
    for (const ir::Op *op : llvm::reverse(order_))
      if (!op->def().isTerminator && !optimizer_[op] && isOnlyForOptimizer(*op)) optimizer_[op] = true;
    // Weights made ready for the next step: whatever reads what the optimizer makes.
    for (const ir::Op *op : order_)
      for (ir::Value operand : op->operands())
        if (operand && operand.op() && optimizer_[operand.op()]) optimizer_[op] = true;
  }

  Phase operator()(const ir::Op &op, size_t index) const {
    auto it = optimizer_.find(&op);
    if (it != optimizer_.end() && it->second) return Phase::optimizer;
    return index <= lossIndex_ ? Phase::forward : Phase::backward;
  }

private:
  static bool hasGradients(const ir::Function &function) {
    return llvm::any_of(function.returns(),
                        [](const ir::ReturnEntry &entry) { return entry.kind == ir::ReturnKind::gradient; });
  }
  /// Reads no batch, and is read by the optimizer alone.
  bool isOnlyForOptimizer(const ir::Op &op) {
    bool isRead = false;
    for (ir::Value result : op.results())
      for (const ir::Op *user : result.users()) {
        if (user->def().isTerminator) continue;
        if (!optimizer_[user]) return false;
        isRead = true;
      }
    return isRead && !readsBatch_[&op];
  }
  void findBatchReaders() {
    for (const ir::Op *op : order_)
      for (ir::Value operand : op->operands())
        if (operand && (operand.isArgument() || (operand.op() && readsBatch_[operand.op()]))) readsBatch_[op] = true;
  }

  std::vector<const ir::Op *> order_;
  std::map<const ir::Op *, bool> optimizer_, readsBatch_;
  size_t lossIndex_ = 0;
};

/// A fusion's class of kernels as it says, an op's as its table entry says.
std::string kindOf(const ir::Op &op) {
  if (!op.body()) return ir::name(op.def().lowering).str();
  const ir::AttrValue *kind = op.attrs().find("kind");
  return kind ? std::get<std::string>(*kind) : "fusion";
}

GraphNode nodeOf(const ir::Op &op, const ir::ValueNames &names) {
  GraphNode node;
  const ir::AttrValue *called = op.body() ? op.attrs().find("name") : nullptr;
  node.name = called ? std::get<std::string>(*called) : op.name().str();
  node.kind = kindOf(op);
  node.text = ir::printOp(op, names);
  node.layer = layerOfOp(op);
  node.line = op.location().line;
  forEachPart(op, [&](const ir::Op &part) {
    bool isProduct = part.def().lowering == ir::Lowering::contraction && part.operand(0u);
    node.isFp8 |= isProduct && ir::isFp8(part.operand(0u).dtype());
  });
  for (ir::Value result : op.results()) {
    node.type += (node.type.empty() ? "" : ", ") + result.type().str();
    node.results.push_back(StringRef(names(result)).drop_front().str());
  }
  // The first result that has a name speaks for all.
  for (ir::Value result : op.results())
    if (node.result.empty() && !result.name().empty()) node.result = names(result);
  if (node.result.empty() && op.resultCount()) node.result = names(op.result());
  if (op.body()) {
    node.ops = 0;
    const ir::ValueNames inner(*op.body());
    forEachPart(op, [&](const ir::Op &part) {
      ++node.ops;
      for (ir::Value result : part.results())
        if (!result.name().empty()) node.inner.push_back(StringRef(inner(result)).drop_front().str());
    });
  }
  return node;
}

template <typename T> void addOnce(std::vector<T> &list, T value) {
  if (!llvm::is_contained(list, value)) list.push_back(std::move(value));
}

llvm::json::Array strings(llvm::ArrayRef<std::string> list) {
  llvm::json::Array array;
  for (const std::string &text : list) array.push_back(text);
  return array;
}

/// Ops without a name of their own (a copy, a padded tensor) are of the layer they read from, else of their reader's.
void inheritLayers(std::vector<GraphNode> &nodes) {
  auto isNamed = [](const GraphNode &node) {
    return llvm::any_of(node.results, [](StringRef name) { return saysSomething(name.trim('"')); });
  };
  for (GraphNode &node : nodes) {
    if (!node.layer.empty() || node.kind == "input" || isNamed(node)) continue;
    for (unsigned input : llvm::reverse(node.inputs))
      if (node.layer.empty() && nodes[input].phase == node.phase) node.layer = nodes[input].layer;
  }
  for (const GraphNode &node : llvm::reverse(nodes))
    for (unsigned input : node.inputs) {
      GraphNode &maker = nodes[input];
      if (maker.layer.empty() && maker.kind != "input" && !isNamed(maker) && maker.phase == node.phase)
        maker.layer = node.layer;
    }
}

} // namespace

StringRef name(Phase phase) {
  constexpr StringRef names[] = {"forward", "backward", "optimizer"};
  return names[static_cast<size_t>(phase)];
}

std::vector<GraphNode> graphOf(const ir::Function &function) {
  const ir::ValueNames names(function.block());
  const Phases phases(function);
  std::vector<GraphNode> nodes;
  llvm::DenseMap<const ir::ValueDef *, unsigned> makers;
  for (ir::Value argument : function.block().arguments()) {
    if (argument.unused()) continue;
    GraphNode node;
    node.name = StringRef(names(argument)).drop_front().str();
    node.kind = "input";
    node.result = names(argument);
    node.type = argument.type().str();
    node.text = node.result + ": " + node.type;
    node.results = {node.name};
    node.ops = 0;
    makers[argument.def()] = nodes.size();
    nodes.push_back(std::move(node));
  }
  size_t index = 0;
  for (const ir::Op &op : function.block().ops()) {
    size_t place = index++;
    if (op.def().isTerminator) continue;
    GraphNode node = nodeOf(op, names);
    node.phase = phases(op, place);
    for (ir::Value operand : op.operands()) {
      if (!operand) continue;
      if (operand.isPersistent())
        addOnce(node.persistents, names(operand));
      else if (auto it = makers.find(operand.def()); it != makers.end())
        addOnce(node.inputs, it->second);
    }
    for (ir::Value result : op.results()) makers[result.def()] = nodes.size();
    nodes.push_back(std::move(node));
  }
  inheritLayers(nodes);
  return nodes;
}

llvm::json::Object GraphNode::json() const {
  llvm::json::Object object{{"name", name}, {"kind", kind}, {"phase", frontend::name(phase)},
                            {"type", type}, {"text", text}, {"inputs", llvm::json::Array(inputs)}};
  if (!result.empty()) object["result"] = result;
  if (!layer.empty()) object["layer"] = layer;
  if (isFp8) object["fp8"] = true;
  if (ops) object["ops"] = ops;
  if (line) object["line"] = line;
  if (!persistents.empty()) object["reads"] = strings(persistents);
  return object;
}

} // namespace fusor::frontend
