// Walks a model's graph and writes it into a module, node by node; what cannot be read is collected.
#pragma once
#include "frontend/onnx/import.h"
#include "frontend/onnx/model_file.h"
#include "frontend/onnx/ops/table.h"
#include "frontend/onnx/scope.h"
#include <deque>

namespace fusor::onnx {

class Function;
class Model;
class ValueInfo;
class Dimension;

/// A function of the file, by what a node calls it.
std::string functionKey(llvm::StringRef domain, llvm::StringRef name, llvm::StringRef overload);

/// Its members are in graph_importer.cpp (the model, the nodes), signature.cpp (inputs and outputs), fold_sizes.cpp and
/// subgraphs.cpp (functions, If).
class GraphImporter {
public:
  /// `equal`: symbols of inputs that an import of the same model found to be other sizes.
  GraphImporter(const Model &model, llvm::StringRef folder, const ImportOptions &options, const TakenTensors &taken,
                EqualSizes equal = {});

  /// What was read; look at problems() first.
  Imported run();
  /// All that is wrong, one a line of a message: "node 'n' (Foo of ai.onnx 13): ...". Empty: nothing.
  llvm::ArrayRef<std::string> problems() const { return problems_; }
  /// Those that are still to be made equal.
  const EqualSizes &equalSizes() const { return writer_->equalSizes(); }
  unsigned problemCount() const { return problemCount_; }

private:
  void report(llvm::Twine text);
  void warn(llvm::Twine text);
  std::string describe(const Node &node, const Scope &scope) const;
  Slot *newSlot(llvm::StringRef name);

  void readOpsets();
  void readFunctions();
  void readInitializers(const Graph &graph, Scope &scope);
  void readInputs(const Graph &graph, Scope &scope);
  void addInput(const ValueInfo &input, unsigned index, Scope &scope);
  std::optional<ir::Dim> dimOf(const Dimension &dim, llvm::StringRef input, unsigned i);
  ir::Dim symbol(llvm::StringRef name);
  void readOutputs(const Graph &graph, Scope &scope);

  /// Imports `nodes` in an order of their own.
  void importNodes(llvm::ArrayRef<const Node *> nodes, Scope &scope);
  void importNode(const Node &node, Scope &scope);
  void expand(const Node &node, Scope &scope, int64_t version, const OpEntry &entry, llvm::ArrayRef<Slot *> inputs);
  bool foldElements(const Node &node, const OpEntry &entry, llvm::ArrayRef<Slot *> inputs, Scope &scope);
  bool foldMovement(const Node &node, const OpEntry &entry, int64_t version, llvm::ArrayRef<Slot *> inputs,
                    Scope &scope);
  void inlineFunction(const Node &node, const Function &function, llvm::ArrayRef<Slot *> inputs, Scope &scope);
  void importIf(const Node &node, Slot *condition, Scope &scope);
  void bind(const Node &node, llvm::MutableArrayRef<Slot> results, Scope &scope);
  void breakOutputs(const Node &node, Scope &scope);

  const Model &model_;
  std::string folder_;
  const ImportOptions &options_;
  const TakenTensors &taken_;
  EqualSizes equal_;
  Imported result_;
  ir::Function *function_ = nullptr;
  std::unique_ptr<Writer> writer_;
  std::unique_ptr<Folder> folding_;
  std::deque<Slot> slots_;
  Opsets opsets_;
  struct LocalFunction {
    const Function *definition;
    Opsets opsets;
  };
  std::map<std::string, LocalFunction> functions_;  // by domain, name and overload
  std::deque<Node> substituted_;                    // nodes of function bodies with the caller's attributes
  llvm::SmallVector<const Function *, 8> inlining_; // those being inlined now
  unsigned ifDepth_ = 0, imported_ = 0;
  llvm::StringMap<std::string> symbolNames_; // of the file -> of the module
  std::vector<std::string> problems_;
  unsigned problemCount_ = 0;
};

} // namespace fusor::onnx
