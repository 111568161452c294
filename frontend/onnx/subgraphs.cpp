// Nodes that stand for others: functions of the file, and If, of which the branch that is taken is imported.
#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/limits.h"
#include "frontend/onnx/names.h"
#include "model.pb.h"
#include "llvm/ADT/STLExtras.h"

namespace fusor::onnx {

std::string functionKey(llvm::StringRef domain, llvm::StringRef name, llvm::StringRef overload) {
  return (domainOf(domain) + "\n" + name + "\n" + overload).str();
}

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
  if (inlining_.size() >= kMaxGraphDepth)
    return refuse("functions call each other more than " + llvm::Twine(kMaxGraphDepth) + " deep");
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
  if (ifDepth_ >= kMaxGraphDepth) return refuse("stands more than " + llvm::Twine(kMaxGraphDepth) + " deep in others");
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
