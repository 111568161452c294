// What the public handles point to. Not installed: frontend/nn, frontend/api and frontend/cli see it, callers do not.
#pragma once
#include "frontend/builder/builder.h"
#include "ir/graph/builder.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"
#include <optional>

namespace fusor::frontend {

struct DimState {
  ir::Dim dim;
  struct Range {
    std::string symbol;
    std::optional<ir::SymbolRange> range; // absent where it was said elsewhere
  };
  std::vector<Range> symbols;
};

struct GraphState {
  explicit GraphState(llvm::StringRef name) : module(std::make_unique<ir::Module>(name)) {}

  std::unique_ptr<ir::Module> module;
  ir::Function *function = nullptr;
  std::vector<ir::ReturnEntry> returns; // of `function`
  ir::Location functionLocation;
  llvm::StringSet<> declaredHere;  // persistent values `function` has declared
  std::vector<std::string> errors; // "file:line: text", in the order of the calls

  void fail(Site site, const llvm::Twine &text);
  /// Declares the symbols of `shape`.
  ir::Shape shape(const Shape &shape, Site site);
  /// Writes the `return` of the current function.
  void closeFunction();
};

/// The way from a public handle to what it stands for, and back.
struct Access {
  static GraphState &graph(const Builder &b) { return *b.graph_; }
  static std::shared_ptr<GraphState> shared(const Builder &b) { return b.graph_; }
  static const std::shared_ptr<GraphState> &shared(const Value &v) { return v.graph_; }
  static ir::Value value(const Value &v) { return ir::Value(static_cast<ir::ValueDef *>(v.def_)); }
  static Value wrap(std::shared_ptr<GraphState> graph, ir::Value value);
  static Builder builder(std::shared_ptr<GraphState> graph);
  static const DimState &state(const Dim &d) { return *d.state_; }
  static Dim wrap(DimState state);
};

inline ir::DType toIr(DType t) { return static_cast<ir::DType>(t); }
inline DType fromIr(ir::DType t) { return static_cast<DType>(t); }
/// Of Fusor's own files the path in its tree, so that text about a config:NAME is the same wherever it was built.
ir::Location toIr(Site s);

/// Any op, given the graph: what Builder::ops and the free functions call.
std::vector<Value> applyOp(const std::shared_ptr<GraphState> &graph, llvm::StringRef op, llvm::ArrayRef<Value> operands,
                           ir::Attrs attrs, Site site);

/// A copy of what was built, or all of its errors, one a line.
llvm::Expected<std::unique_ptr<ir::Module>> finish(const Builder &builder);

} // namespace fusor::frontend
