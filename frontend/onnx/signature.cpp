// What a graph takes and gives: inputs with their dims as numbers and symbols, outputs.
#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/limits.h"
#include "frontend/onnx/names.h"
#include "ir/graph/names.h"
#include "model.pb.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

namespace fusor::onnx {

using ir::Dim, ir::DType, ir::Shape;

// --- inputs

void GraphImporter::readInputs(const Graph &graph, Scope &scope) {
  unsigned index = 0;
  llvm::StringSet<> seen;
  for (const ValueInfo &input : graph.input()) {
    if (!seen.insert(input.name()).second || input.name().empty()) {
      report(input.name().empty() ? llvm::Twine("an input has no name")
                                  : "input '" + llvm::Twine(shown(input.name())) + "' is declared twice");
      continue;
    }
    if (scope.names.count(input.name())) continue; // an initializer: a constant, or a default that nobody overrides
    addInput(input, index++, scope);
  }
  for (const auto &[symbol, size] : equal_) result_.module->symbols().erase(symbol);
}

void GraphImporter::addInput(const ValueInfo &input, unsigned index, Scope &scope) {
  Slot *slot = newSlot(input.name());
  scope.names[input.name()] = slot;
  slot->isBroken = true;
  std::string who = "input '" + shown(input.name()) + "' ";
  const Type &type = input.type();
  if (!type.has_tensor_type()) {
    const char *kind = type.has_sequence_type()        ? "a sequence"
                       : type.has_map_type()           ? "a map"
                       : type.has_optional_type()      ? "an optional"
                       : type.has_sparse_tensor_type() ? "a sparse tensor"
                                                       : "of no type";
    return report(who + "is " + kind + "; only tensors are supported");
  }
  auto element = elementTypeOf(type.tensor_type().elem_type());
  if (!element) return report(who + "cannot be read: " + llvm::toString(element.takeError()));
  std::optional<Data> content;
  if (options_.content && (options_.fixSizes || !type.tensor_type().has_shape())) content = options_.content(index);
  Shape shape;
  if (content) {
    shape.assign(content->shape.begin(), content->shape.end());
  } else if (!type.tensor_type().has_shape()) {
    return report(who + "declares no shape, so its number of dims is not known; give its content (--input, --inputs)");
  } else {
    if (type.tensor_type().shape().dim_size() > static_cast<int>(kMaxRank)) return report(who + "has too many dims");
    for (const Dimension &dim : type.tensor_type().shape().dim()) {
      auto size = dimOf(dim, input.name(), shape.size());
      if (!size)
        return report(who + "has a dim that is no size: " +
                      (dim.has_dim_value() ? std::to_string(dim.dim_value()) : shown(dim.dim_param())));
      shape.push_back(*size);
    }
  }
  if (auto error = writer_->checkSize(shape)) return report(who + llvm::toString(std::move(error)));
  slot->value = function_->block().addArgument({element->dtype, shape}, input.name());
  slot->isNibble = element->isNibble;
  slot->isBroken = false;
}

ir::Dim GraphImporter::symbol(llvm::StringRef name) {
  auto [it, isNew] = symbolNames_.try_emplace(name, "");
  if (isNew) {
    std::string plain = name.take_front(64).str();
    for (char &c : plain)
      if (!llvm::isAlnum(c) && c != '_') c = '_';
    if (!ir::isSymbolName(plain)) plain = "d_" + plain;
    std::string fresh = plain;
    for (unsigned i = 1; result_.module->symbols().count(fresh); ++i) fresh = plain + "_" + std::to_string(i);
    result_.module->declareSymbol(fresh, {1, kMaxSymbol});
    it->second = fresh;
  }
  auto equal = equal_.find(it->second);
  return equal == equal_.end() ? Dim::symbol(it->second) : equal->second;
}

// A number, a name, or a sum of them ("past_sequence_length + sequence_length" is what exporters write).
std::optional<Dim> GraphImporter::dimOf(const Dimension &dim, llvm::StringRef input, unsigned i) {
  if (dim.has_dim_value() && dim.dim_value() >= 0)
    return dim.dim_value() <= kMaxDim ? std::optional<Dim>(Dim(dim.dim_value())) : std::nullopt;
  if (dim.has_dim_value() && dim.dim_value() < -1) return std::nullopt;
  llvm::StringRef param = llvm::StringRef(dim.dim_param()).trim();
  if (dim.has_dim_value() || param.empty()) return symbol((input + "_dim" + llvm::Twine(i)).str());
  llvm::SmallVector<llvm::StringRef, 2> parts;
  param.split(parts, '+');
  Dim sum(0);
  for (llvm::StringRef part : parts) {
    part = part.trim();
    int64_t number = 0;
    if (part.empty() || parts.size() > 4) return symbol(param);
    if (!part.getAsInteger(10, number))
      sum = number >= 0 && number <= kMaxDim ? sum + Dim(number) : sum;
    else
      sum = sum + symbol(part);
  }
  return sum;
}

// --- outputs

void GraphImporter::readOutputs(const Graph &graph, Scope &scope) {
  llvm::SmallVector<ir::ReturnEntry, 4> returns;
  llvm::StringSet<> seen;
  if (graph.output_size() == 0) report("the graph has no outputs");
  for (const ValueInfo &output : graph.output()) {
    std::string who = "output '" + shown(output.name()) + "' ";
    if (!seen.insert(output.name()).second) {
      report(who + "is declared twice");
      continue;
    }
    Slot *slot = scope.find(output.name());
    if (!slot) {
      if (!problemCount_) report(who + "is what nothing defines");
      continue;
    }
    if (slot->isBroken) continue; // has been said
    writer_->startNode({});
    Term term = materialize(*writer_, *slot);
    if (auto failure = writer_->takeFailure()) report(who + *failure);
    if (!term) continue;
    if (output.type().has_tensor_type()) {
      auto declared = elementTypeOf(output.type().tensor_type().elem_type());
      if (!declared)
        llvm::consumeError(declared.takeError()); // what it is has been computed
      else if (declared->dtype != term.dtype() || declared->isNibble != slot->isNibble)
        report(who + "is declared as " + (declared->isNibble ? "4-bit " : "") + ir::name(declared->dtype) +
               ", its node makes " + (slot->isNibble ? "4-bit " : "") + term.typeText());
    }
    if (term.value().op() && term.value().name().empty()) term.value().setName(shown(output.name()));
    returns.push_back({ir::ReturnKind::result, "", term.value()});
    result_.outputs.push_back(output.name());
  }
  if (!problemCount_) function_->setReturns(returns);
}

} // namespace fusor::onnx
