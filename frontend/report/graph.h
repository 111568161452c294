// A function as a graph to draw: a node an op, edges where one reads what another makes, and what groups nodes: the
// phase of a training step and the layer.
#pragma once
#include "ir/graph/graph.h"
#include "llvm/Support/JSON.h"
#include <string>
#include <vector>

namespace fusor::frontend {

/// forward up to the loss, backward behind it, the optimizer: multi-tensor ops, what only they read, and
/// what reads them. A
/// function without gradients is all forward.
enum class Phase : uint8_t { forward, backward, optimizer };
llvm::StringRef name(Phase phase);

struct GraphNode {
  std::string name;   // an op, or what a fusion is called
  std::string kind;   // an op's class of kernels, a fusion's kind, "input" of an argument
  std::string result; // "%blocks.0.fc1", the first that has a name
  std::string type;   // of all results: "bf16[B, 256, 768], f32[B, 256, 1]"
  std::string text;   // its IR; a fusion with its body
  std::string layer;  // "blocks.0", or empty
  Phase phase = Phase::forward;
  bool isFp8 = false;                   // a product of FP8 operands
  unsigned ops = 1;                     // in a fusion: how many it holds
  unsigned line = 0;                    // of the module's file; 0: unknown
  std::vector<unsigned> inputs;         // nodes, each once
  std::vector<std::string> persistents; // "@fc1.weight": read from the module
  std::vector<std::string> results;     // names as printed, without %
  std::vector<std::string> inner;       // named values of a fusion's body, as printed, without %

  llvm::json::Object json() const;
};

/// The function's arguments that somebody reads, then its ops but `return`, in order.
std::vector<GraphNode> graphOf(const ir::Function &function);

} // namespace fusor::frontend
