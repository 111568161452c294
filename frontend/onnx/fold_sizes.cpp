// Nodes that compute shapes out of shapes are done at import, on known sizes.
#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/limits.h"
#include "ir/reference/reference.h"
#include "model.pb.h"

namespace fusor::onnx {

using ir::Dim, ir::DType, ir::Shape;

namespace {

// The content of a slot as known sizes, where it is small integers.
const Known *knownIn(Slot *slot) {
  if (!slot || slot->isNibble) return nullptr;
  if (!slot->known && slot->data) slot->known = knownOf(*slot->data);
  return slot->known ? &*slot->known : nullptr;
}

} // namespace

bool GraphImporter::foldElements(const Node &node, const OpEntry &entry, llvm::ArrayRef<Slot *> inputs, Scope &scope) {
  bool chooses = entry.fold == &foldWhere;
  unsigned arity = chooses ? 3 : entry.fold == &foldNeg ? 1 : 2;
  if (inputs.size() != arity || node.output_size() != 1 || node.attribute_size()) return false;
  llvm::SmallVector<const Known *, 3> arguments;
  for (Slot *slot : inputs) {
    const Known *known = knownIn(slot);
    if (!known) return false;
    arguments.push_back(known);
  }
  unsigned first = chooses ? 1 : 0;
  for (unsigned i = first; i < arguments.size(); ++i)
    if (arguments[i]->dtype != arguments[first]->dtype) return false;
  if (chooses && arguments[0]->dtype != DType::i1) return false;
  if (!chooses && arguments[0]->dtype == DType::i1 && entry.fold != &foldEqual) return false;
  auto known = onnx::foldElements(entry.fold, arguments, entry.boolean ? DType::i1 : arguments[first]->dtype);
  if (!known) return false;
  Slot slot;
  slot.known = std::move(*known);
  bind(node, slot, scope);
  return true;
}

// The operator is run on the numbers of the elements: where they come out is where the sizes go.
bool GraphImporter::foldMovement(const Node &node, const OpEntry &entry, int64_t version, llvm::ArrayRef<Slot *> inputs,
                                 Scope &scope) {
  ir::Module scratch("fold");
  ir::Function &function = scratch.addFunction("fold");
  Writer writer(scratch, function);
  Folder folder(scratch, {}, kMaxKnown * 64);
  std::deque<Slot> copies;
  llvm::SmallVector<Slot *, 4> slots;
  std::vector<ir::RefTensor> arguments;
  std::vector<Dim> elements;
  std::optional<DType> dtype;
  for (unsigned i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) {
      slots.push_back(nullptr);
      continue;
    }
    const Known *known = knownIn(inputs[i]);
    if (!known) return false;
    copies.emplace_back();
    slots.push_back(&copies.back());
    bool moves = i < 32 && (entry.moves >> i & 1);
    if (!moves) {
      if (!known->isConstant()) return false;
      copies.back().known = *known;
      continue;
    }
    if (dtype && *dtype != known->dtype) return false;
    dtype = known->dtype;
    copies.back().value = function.block().addArgument({DType::i64, {known->shape.begin(), known->shape.end()}}, "x");
    ir::RefTensor numbers{DType::i64, known->shape, {}};
    for (const Dim &element : known->elements) {
      numbers.data.push_back(static_cast<double>(elements.size()));
      elements.push_back(element);
    }
    arguments.push_back(std::move(numbers));
  }
  if (!dtype) return false;
  NodeSite site(writer, folder, node, version, slots, "");
  writer.startNode({});
  entry.expand(site);
  if (!site.failed()) site.checkAllRead();
  if (writer.takeFailure()) return false; // said when it is tried in earnest
  for (const ir::Op &op : function.block().ops())
    for (ir::Value result : op.results())
      if (!result.type().elements().isConstant() || result.type().elements().value() > kMaxKnown) return false;
  llvm::SmallVector<ir::ReturnEntry, 4> returns;
  for (Slot &output : site.outputs()) {
    if (!output.value) return false;
    returns.push_back({ir::ReturnKind::result, "", output.value});
  }
  function.setReturns(returns);
  auto evaluated = ir::evaluate(function, arguments);
  if (!evaluated) return llvm::consumeError(evaluated.takeError()), false;
  std::vector<Slot> results(returns.size());
  for (unsigned i = 0; i < results.size(); ++i) {
    const ir::RefTensor &from = evaluated->results[i];
    Known known{*dtype, from.shape, {}};
    for (double number : from.data) known.elements.push_back(elements[static_cast<size_t>(number)]);
    results[i].known = std::move(known);
  }
  bind(node, results, scope);
  return true;
}

} // namespace fusor::onnx
