#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/limits.h"
#include "frontend/onnx/names.h"
#include "model.pb.h"

namespace fusor::onnx {

GraphImporter::GraphImporter(const Model &model, llvm::StringRef folder, const ImportOptions &options,
                             const TakenTensors &taken, EqualSizes equal)
    : model_(model), folder_(folder), options_(options), taken_(taken), equal_(std::move(equal)) {}

void GraphImporter::report(llvm::Twine text) {
  ++problemCount_;
  if (problems_.size() < kMaxProblems) problems_.push_back(text.str());
}
void GraphImporter::warn(llvm::Twine text) {
  if (result_.warnings.size() < kMaxProblems) result_.warnings.push_back(text.str());
}

std::string GraphImporter::describe(const Node &node, const Scope &scope) const {
  std::string name = node.name().empty() && node.output_size() ? "making '" + shown(node.output(0)) + "'"
                                                               : "'" + shown(node.name()) + "'";
  std::string domain = domainOf(node.domain());
  auto version = scope.opsets->find(domain);
  return "node " + name + " (" + shown(node.op_type()) + " of " + shownDomain(domain) +
         (version == scope.opsets->end() ? "" : " " + std::to_string(version->second)) + ")";
}

Slot *GraphImporter::newSlot(llvm::StringRef name) {
  slots_.emplace_back();
  slots_.back().name = name.str();
  return &slots_.back();
}

// --- the model

Imported GraphImporter::run() {
  result_.module = std::make_unique<ir::Module>("onnx");
  result_.irVersion = model_.ir_version();
  result_.producer = shown(model_.producer_name());
  function_ = &result_.module->addFunction("forward");
  writer_ = std::make_unique<Writer>(*result_.module, *function_);
  folding_ = std::make_unique<Folder>(*result_.module, options_.content, kFoldingElements);

  if (model_.ir_version() < 3 || model_.ir_version() > 14)
    report("ir_version is " + llvm::Twine(model_.ir_version()) + ", 3 to 14 are read");
  if (!model_.has_graph()) report("the model has no graph");
  readOpsets();
  readFunctions();
  if (model_.training_info_size()) warn("training_info is ignored");
  if (problemCount_) return std::move(result_);

  const Graph &graph = model_.graph();
  Scope scope;
  scope.opsets = &opsets_;
  readInitializers(graph, scope);
  readInputs(graph, scope);
  std::vector<const Node *> nodes;
  for (const Node &node : graph.node()) {
    nodes.push_back(&node);
    for (const std::string &output : node.output())
      if (!output.empty() && scope.names.count(output))
        report("'" + shown(output) + "' is an input or initializer and is defined by " + describe(node, scope));
  }
  if (!problemCount_) importNodes(nodes, scope);
  readOutputs(graph, scope);
  for (unsigned input : folding_->fixedInputs())
    result_.fixedInputs.push_back(function_->block().argument(input).name().str());
  return std::move(result_);
}

namespace {

// Adds what `imports` says; false for a domain with two versions.
template <typename Imports> std::optional<std::string> readImports(const Imports &imports, Opsets &into) {
  for (const OperatorSet &set : imports) {
    auto [it, isNew] = into.try_emplace(domainOf(set.domain()), set.version());
    if (!isNew && it->second != set.version())
      return llvm::formatv("opset_import gives domain {0} two versions, {1} and {2}", shownDomain(it->first),
                           it->second, set.version())
          .str();
  }
  return std::nullopt;
}

} // namespace

void GraphImporter::readOpsets() {
  if (auto wrong = readImports(model_.opset_import(), opsets_)) report(*wrong);
  if (auto it = opsets_.find(""); it != opsets_.end() && (it->second < 1 || it->second > kNewestOpset))
    report("opset " + llvm::Twine(it->second) + " of ai.onnx is not known, 1 to " + llvm::Twine(kNewestOpset) +
           " are read");
  for (const auto &[domain, version] : opsets_)
    if (result_.opsets.size() < kMaxProblems) result_.opsets[shownDomain(domain)] = version;
}

void GraphImporter::readFunctions() {
  for (const Function &function : model_.functions()) {
    LocalFunction local{&function, {}};
    if (auto wrong = readImports(function.opset_import(), local.opsets))
      report("function '" + shown(function.name()) + "': " + *wrong);
    auto [it, isNew] =
        functions_.try_emplace(functionKey(function.domain(), function.name(), function.overload()), std::move(local));
    if (!isNew) report("function '" + shown(function.name()) + "' is defined twice");
  }
}

void GraphImporter::readInitializers(const Graph &graph, Scope &scope) {
  for (const Tensor &tensor : graph.initializer()) {
    std::string who = "initializer '" + shown(tensor.name()) + "' ";
    if (tensor.name().empty()) {
      report("an initializer has no name");
      continue;
    }
    auto [it, isNew] = scope.names.try_emplace(tensor.name(), nullptr);
    if (!isNew) {
      report(who + "is given twice");
      continue;
    }
    Slot *slot = it->second = newSlot(tensor.name());
    auto there = taken_.find(&tensor);
    auto data = there != taken_.end() ? llvm::Expected<Data>(there->second) : readTensor(tensor, folder_);
    if (!data) {
      report(who + llvm::toString(data.takeError()));
      slot->isBroken = true;
      continue;
    }
    ++result_.constants;
    result_.constantBytes += static_cast<int64_t>(data->bytes->size());
    slot->isNibble = data->isNibble;
    slot->data = std::move(*data);
  }
  for (const SparseTensor &sparse : graph.sparse_initializer())
    report("sparse initializer '" + shown(sparse.values().name()) + "' is not supported");
}

// --- nodes

void GraphImporter::importNodes(llvm::ArrayRef<const Node *> nodes, Scope &scope) {
  auto order = orderOf(nodes);
  if (!order) return report(llvm::toString(order.takeError()));
  for (const std::string &warning : order->warnings) warn(warning);
  for (const Node *node : order->nodes) importNode(*node, scope);
}

void GraphImporter::breakOutputs(const Node &node, Scope &scope) {
  for (const std::string &output : node.output()) {
    if (output.empty()) continue;
    Slot *slot = newSlot(output);
    slot->isBroken = true;
    scope.names[output] = slot;
  }
}

void GraphImporter::importNode(const Node &node, Scope &scope) {
  auto refuse = [&](llvm::Twine why) {
    report(describe(node, scope) + ": " + why);
    breakOutputs(node, scope);
  };
  if (++imported_ > kMaxInlined) {
    if (imported_ == kMaxInlined + 1)
      report("has more than " + llvm::Twine(kMaxInlined) + " nodes, those of functions counted at each call");
    return breakOutputs(node, scope);
  }
  llvm::SmallVector<Slot *, 4> inputs;
  bool hasBroken = false;
  std::string missing;
  for (const std::string &input : node.input()) {
    Slot *slot = input.empty() ? nullptr : scope.find(input);
    if (!input.empty() && !slot && missing.empty()) missing = input;
    hasBroken |= slot && slot->isBroken;
    inputs.push_back(slot);
  }
  std::string domain = domainOf(node.domain());
  auto version = scope.opsets->find(domain);
  auto local = functions_.find(functionKey(domain, node.op_type(), node.overload()));
  bool isIf = domain.empty() && node.op_type() == "If";
  Found found;
  if (local == functions_.end() && !isIf) {
    if (version == scope.opsets->end() && domain != "com.microsoft")
      return refuse(llvm::Twine("its domain is not among the opset imports"));
    int64_t at = version == scope.opsets->end() ? 1 : version->second;
    found = findOperator(domain, node.op_type(), at);
    if (!found.oldest)
      return refuse("there is no such operator in Fusor" +
                    llvm::Twine(domain.empty() ? "" : ", nor a function of that name in the file"));
    if (!found.entry)
      return refuse("version " + llvm::Twine(at) + " of its domain is too old, version " + llvm::Twine(found.oldest) +
                    " and newer are supported");
  }
  if (!missing.empty()) return refuse("it reads '" + llvm::Twine(shown(missing)) + "', which nothing defines");
  if (hasBroken) return breakOutputs(node, scope); // what it reads was refused, which has been said
  if (result_.nodes.size() < 4096 && local == functions_.end())
    ++result_.nodes[domain.empty() ? shown(node.op_type()) : shownDomain(domain) + "." + shown(node.op_type())];

  if (local != functions_.end()) return inlineFunction(node, *local->second.definition, inputs, scope);
  if (isIf) return importIf(node, inputs.empty() ? nullptr : inputs[0], scope);
  int64_t at = version == scope.opsets->end() ? 1 : version->second;
  if (found.entry->fold && foldElements(node, *found.entry, inputs, scope)) return;
  if (found.entry->moves && foldMovement(node, *found.entry, at, inputs, scope)) return;
  expand(node, scope, at, *found.entry, inputs);
}

void GraphImporter::bind(const Node &node, llvm::MutableArrayRef<Slot> results, Scope &scope) {
  for (unsigned i = 0; i < results.size(); ++i) {
    const std::string &name = node.output(static_cast<int>(i));
    if (name.empty()) continue;
    Slot *slot = newSlot(name);
    *slot = std::move(results[i]);
    slot->name = name;
    if (slot->value && slot->value.op() && slot->value.name().empty()) slot->value.setName(shown(name));
    scope.names[name] = slot;
  }
}

namespace {

// Whether the operator moves elements of 4-bit types, and no others.
bool areMovedNibbles(const OpEntry &entry, llvm::ArrayRef<Slot *> inputs) {
  bool some = false, all = true;
  for (unsigned i = 0; i < inputs.size() && i < 32; ++i) {
    if (!inputs[i] || !(entry.moves >> i & 1)) continue;
    some |= inputs[i]->isNibble, all &= inputs[i]->isNibble;
  }
  return some && all;
}

} // namespace

void GraphImporter::expand(const Node &node, Scope &scope, int64_t version, const OpEntry &entry,
                           llvm::ArrayRef<Slot *> inputs) {
  NodeSite site(*writer_, *folding_, node, version, inputs, folder_);
  writer_->startNode(
      {"onnx:" + locationName(node.name().empty() && node.output_size() ? node.output(0) : node.name()), 0, 0});
  const bool movesNibbles = areMovedNibbles(entry, inputs);
  for (unsigned i = 0; movesNibbles && i < inputs.size(); ++i) site.isNibble(i);
  entry.expand(site);
  if (!site.failed()) site.checkAllRead();
  for (Slot &output : site.outputs()) output.isNibble |= movesNibbles;
  for (unsigned i = 0; i < site.outputCount() && !site.failed(); ++i)
    if (site.wants(i) && !typeOf(site.outputs()[i])) site.fail("its result {0} is not supported", i);
  if (auto failure = writer_->takeFailure()) {
    report(describe(node, scope) + ": " + *failure);
    return breakOutputs(node, scope);
  }
  for (IndexBound bound : site.indexBounds()) {
    bound.node = describe(node, scope);
    result_.indexBounds.push_back(std::move(bound));
  }
  bind(node, site.outputs(), scope);
}

} // namespace fusor::onnx
