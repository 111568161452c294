#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/limits.h"
#include "frontend/onnx/names.h"
#include "ir/graph/names.h"
#include "model.pb.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

namespace fusor::onnx {

using ir::Dim, ir::DType, ir::Shape;

namespace {

constexpr unsigned kMaxInlined = 1 << 20; // nodes, those of functions counted at each call
constexpr unsigned kMaxDepth = 32;        // of functions in functions, and of If in If

std::string domainOf(llvm::StringRef domain) { return domain == "ai.onnx" ? "" : domain.str(); }
std::string shownDomain(llvm::StringRef domain) { return domain.empty() ? "ai.onnx" : shown(domain); }

std::string functionKey(llvm::StringRef domain, llvm::StringRef name, llvm::StringRef overload) {
  return (domainOf(domain) + "\n" + name + "\n" + overload).str();
}

// The content of a slot as known sizes, where it is small integers.
const Known *knownIn(Slot *slot) {
  if (!slot) return nullptr;
  if (!slot->known && slot->data) slot->known = knownOf(*slot->data);
  return slot->known ? &*slot->known : nullptr;
}

} // namespace

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
    slot->data = std::move(*data);
  }
  for (const SparseTensor &sparse : graph.sparse_initializer())
    report("sparse initializer '" + shown(sparse.values().name()) + "' is not supported");
}

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
  auto dtype = dtypeOf(type.tensor_type().elem_type());
  if (!dtype) return report(who + "cannot be read: " + llvm::toString(dtype.takeError()));
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
  slot->value = function_->block().addArgument({*dtype, shape}, input.name());
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
      auto declared = dtypeOf(output.type().tensor_type().elem_type());
      if (!declared)
        llvm::consumeError(declared.takeError()); // what it is has been computed
      else if (*declared != term.dtype())
        report(who + "is declared as " + ir::name(*declared) + ", its node makes " + term.typeText());
    }
    if (term.value().op() && term.value().name().empty()) term.value().setName(shown(output.name()));
    returns.push_back({ir::ReturnKind::result, "", term.value()});
    result_.outputs.push_back(output.name());
  }
  if (!problemCount_) function_->setReturns(returns);
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

void GraphImporter::expand(const Node &node, Scope &scope, int64_t version, const OpEntry &entry,
                           llvm::ArrayRef<Slot *> inputs) {
  NodeSite site(*writer_, *folding_, node, version, inputs, folder_);
  writer_->startNode(
      {"onnx:" + locationName(node.name().empty() && node.output_size() ? node.output(0) : node.name()), 0, 0});
  entry.expand(site);
  if (!site.failed()) site.checkAllRead();
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

// --- folding of sizes

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

// --- functions and If

namespace {

// Replaces references to the caller's attributes, in subgraphs too; a reference to one that is not given drops the
// attribute.
void substitute(Node &node, const llvm::StringMap<const Attribute *> &given) {
  llvm::SmallVector<Node *, 4> open{&node};
  while (!open.empty()) {
    Node *at = open.pop_back_val();
    for (int i = at->attribute_size(); i-- > 0;) {
      Attribute &a = *at->mutable_attribute(i);
      if (!a.ref_attr_name().empty()) {
        auto it = given.find(a.ref_attr_name());
        if (it == given.end()) {
          at->mutable_attribute()->DeleteSubrange(i, 1);
          continue;
        }
        std::string name = a.name();
        a = *it->second;
        a.set_name(name);
        continue;
      }
      if (a.has_g())
        for (Node &inner : *a.mutable_g()->mutable_node()) open.push_back(&inner);
      for (Graph &g : *a.mutable_graphs())
        for (Node &inner : *g.mutable_node()) open.push_back(&inner);
    }
  }
}

} // namespace

void GraphImporter::inlineFunction(const Node &node, const Function &function, llvm::ArrayRef<Slot *> inputs,
                                   Scope &scope) {
  auto refuse = [&](llvm::Twine why) {
    report(describe(node, scope) + ": " + why);
    breakOutputs(node, scope);
  };
  if (llvm::is_contained(inlining_, &function)) return refuse("the function calls itself");
  if (inlining_.size() >= kMaxDepth)
    return refuse("functions call each other more than " + llvm::Twine(kMaxDepth) + " deep");
  if (static_cast<int>(inputs.size()) > function.input_size() || node.output_size() > function.output_size())
    return refuse("the function has " + llvm::Twine(function.input_size()) + " inputs and " +
                  llvm::Twine(function.output_size()) + " results");
  llvm::StringMap<const Attribute *> given;
  for (const Attribute &a : function.attribute_proto()) given[a.name()] = &a; // defaults
  for (const Attribute &a : node.attribute()) {
    bool known = given.count(a.name()) || llvm::is_contained(function.attribute(), a.name());
    if (!known) return refuse("the function has no attribute '" + llvm::Twine(shown(a.name())) + "'");
    given[a.name()] = &a;
  }
  Scope body;
  body.opsets = &functions_.find(functionKey(function.domain(), function.name(), function.overload()))->second.opsets;
  for (int i = 0; i < function.input_size(); ++i)
    if (i < static_cast<int>(inputs.size()) && inputs[i]) body.names[function.input(i)] = inputs[i];
  // An input left out is the empty name inside.
  std::vector<const Node *> nodes;
  if (imported_ + function.node_size() > kMaxInlined)
    return refuse("the functions of the file become more than " + llvm::Twine(kMaxInlined) + " nodes");
  for (const Node &original : function.node()) {
    Node &copy = substituted_.emplace_back(original);
    substitute(copy, given);
    for (std::string &input : *copy.mutable_input())
      if (!input.empty() && llvm::is_contained(function.input(), input) && !body.names.count(input)) input.clear();
    nodes.push_back(&copy);
  }
  inlining_.push_back(&function);
  importNodes(nodes, body);
  inlining_.pop_back();
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    Slot *slot = body.find(function.output(i));
    if (!slot)
      return refuse("the function does not define its result '" + llvm::Twine(shown(function.output(i))) + "'");
    scope.names[node.output(i)] = slot;
  }
}

// Only the branch that is taken is imported.
void GraphImporter::importIf(const Node &node, Slot *condition, Scope &scope) {
  auto refuse = [&](llvm::Twine why) {
    report(describe(node, scope) + ": " + why);
    breakOutputs(node, scope);
  };
  const Graph *branches[2] = {nullptr, nullptr};
  for (const Attribute &a : node.attribute()) {
    if (a.name() == "else_branch" && a.has_g()) branches[0] = &a.g();
    if (a.name() == "then_branch" && a.has_g()) branches[1] = &a.g();
  }
  if (!condition || !branches[0] || !branches[1]) return refuse("needs a condition and two branches");
  if (ifDepth_ >= kMaxDepth) return refuse("stands more than " + llvm::Twine(kMaxDepth) + " deep in others");
  NodeSite site(*writer_, *folding_, node, 1, condition, folder_);
  writer_->startNode({});
  auto value = site.integers(0, "the condition");
  if (auto failure = writer_->takeFailure())
    return refuse(*failure + "; an If is supported where its condition is known at import");
  if (value->size() != 1) return refuse("the condition must be one boolean");
  const Graph &branch = *branches[value->front() != 0];
  if (branch.output_size() < node.output_size())
    return refuse("its branch has " + llvm::Twine(branch.output_size()) + " results");
  Scope inner;
  inner.outer = &scope;
  inner.opsets = scope.opsets;
  readInitializers(branch, inner);
  std::vector<const Node *> nodes;
  for (const Node &n : branch.node()) nodes.push_back(&n);
  ++ifDepth_;
  importNodes(nodes, inner);
  --ifDepth_;
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    Slot *slot = inner.find(branch.output(i).name());
    if (!slot) return refuse("its branch does not define '" + llvm::Twine(shown(branch.output(i).name())) + "'");
    scope.names[node.output(i)] = slot;
  }
}

} // namespace fusor::onnx
