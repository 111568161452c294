// Names of a graph, of a subgraph inside it, or of a function's body, and the nodes below them in an order that can be
// run.
#pragma once
#include "frontend/onnx/site.h"
#include <map>

namespace fusor::onnx {

class Graph;

using Opsets = std::map<std::string, int64_t>; // by domain, "" for the default one

struct Scope {
  const Scope *outer = nullptr; // names of a graph are seen in its subgraphs; inner ones win
  const Opsets *opsets = nullptr;
  llvm::StringMap<Slot *> names;

  Slot *find(llvm::StringRef name) const {
    for (const Scope *at = this; at; at = at->outer)
      if (auto it = at->names.find(name); it != at->names.end()) return it->second;
    return nullptr;
  }
};

struct NodeOrder {
  std::vector<const Node *> nodes;   // each behind those it reads from
  std::vector<std::string> warnings; // a value that is defined twice
};

/// Sorts nodes; files often do not. Errors: a cycle, a value that two nodes define (of two Constants the later wins,
/// with a warning).
llvm::Expected<NodeOrder> orderOf(llvm::ArrayRef<const Node *> nodes);

} // namespace fusor::onnx
