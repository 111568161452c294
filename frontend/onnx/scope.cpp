#include "frontend/onnx/scope.h"
#include "frontend/onnx/limits.h"
#include "frontend/onnx/names.h"
#include "model.pb.h"

namespace fusor::onnx {
namespace {

// Calls `use` with every name that `node` or a subgraph of it reads; what a subgraph defines itself is among them.
void forEachRead(const Node &node, llvm::function_ref<void(llvm::StringRef)> use) {
  llvm::SmallVector<const Node *, 4> open{&node};
  while (!open.empty()) {
    const Node *at = open.pop_back_val();
    for (const std::string &input : at->input()) use(input);
    for (const Attribute &a : at->attribute()) {
      auto graph = [&](const Graph &g) {
        for (const Node &inner : g.node()) open.push_back(&inner);
        for (const ValueInfo &output : g.output()) use(output.name());
      };
      if (a.has_g()) graph(a.g());
      for (const Graph &g : a.graphs()) graph(g);
    }
  }
}

} // namespace

llvm::Expected<NodeOrder> orderOf(llvm::ArrayRef<const Node *> nodes) {
  NodeOrder order;
  llvm::StringMap<unsigned> producer;
  std::vector<bool> dropped(nodes.size());
  for (unsigned i = 0; i < nodes.size(); ++i)
    for (const std::string &output : nodes[i]->output()) {
      if (output.empty()) continue;
      auto [it, isNew] = producer.try_emplace(output, i);
      if (isNew) continue;
      const Node &earlier = *nodes[it->second];
      bool constants = earlier.op_type() == "Constant" && nodes[i]->op_type() == "Constant" && it->second != i;
      if (!constants)
        return problem("'{0}' is defined twice, by node {1} ({2}) and node {3} ({4})", shown(output), it->second,
                       shown(earlier.op_type()), i, shown(nodes[i]->op_type()));
      if (order.warnings.size() < kMaxProblems)
        order.warnings.push_back(
            llvm::formatv("'{0}' is defined twice, by Constant nodes {1} and {2}; the later one is used", shown(output),
                          it->second, i)
                .str());
      dropped[it->second] = true;
      it->second = i;
    }

  // Depth first, from the first node on, without recursion: a correct order stays as it is.
  enum State : uint8_t { untouched, open, done };
  std::vector<State> state(nodes.size(), untouched);
  struct Step {
    unsigned node;
    llvm::SmallVector<unsigned, 4> needs;
  };
  std::vector<Step> path;
  auto enter = [&](unsigned i) {
    state[i] = open;
    path.push_back({i, {}});
    forEachRead(*nodes[i], [&](llvm::StringRef name) {
      if (auto it = producer.find(name); it != producer.end() && state[it->second] != done)
        path.back().needs.push_back(it->second);
    });
    std::reverse(path.back().needs.begin(), path.back().needs.end());
  };
  for (unsigned i = 0; i < nodes.size(); ++i) {
    if (state[i] != untouched || dropped[i]) continue;
    enter(i);
    while (!path.empty()) {
      Step &step = path.back();
      if (step.needs.empty()) {
        state[step.node] = done;
        order.nodes.push_back(nodes[step.node]);
        path.pop_back();
        continue;
      }
      unsigned next = step.needs.pop_back_val();
      if (state[next] == open) {
        if (next == step.node && !nodes[next]->attribute().empty()) continue; // a subgraph's own name
        return problem("node {0} '{1}' ({2}) reads what depends on its own result: the graph has a cycle", next,
                       shown(nodes[next]->name()), shown(nodes[next]->op_type()));
      }
      if (state[next] == untouched) enter(next);
    }
  }
  return order;
}

} // namespace fusor::onnx
