// Reads an ONNX model: protobuf -> nodes -> Fusor's ops. What a model needs and Fusor does not have is listed whole, in
// one error. A file is hostile: nothing in it can crash the importer, make it read outside the model's folder, or take
// more than bounded memory and time.
#pragma once
#include "frontend/onnx/folder.h"
#include "frontend/onnx/index_bounds.h"
#include "ir/graph/graph.h"
#include <map>

namespace fusor::onnx {

struct ImportOptions {
  /// The content of an input, by its place among the inputs that are not initializers. Asked where a shape, an axis or
  /// a count depends on it: the module is then right for that content only, see Imported::fixedInputs.
  InputContent content;
  /// Every size is that of `content`: no symbols.
  bool fixSizes = false;
};

struct Imported {
  std::unique_ptr<ir::Module> module; // one function, "forward"
  std::vector<std::string> outputs;   // names of its results, as the file has them
  std::vector<std::string> fixedInputs;
  std::vector<IndexBound> indexBounds; // to be checked with the inputs of each run
  std::vector<std::string> warnings;

  // What was read
  int64_t irVersion = 0;
  std::string producer;
  std::map<std::string, int64_t> opsets; // by domain, "ai.onnx" for the default one
  std::map<std::string, unsigned> nodes; // how many of each operator, after functions are inlined
  int64_t constants = 0, constantBytes = 0;
};

/// The model in file `path`; side files are read from its folder. Errors: DiagnosticError with everything that was
/// found.
llvm::Expected<Imported> importModel(llvm::StringRef path, const ImportOptions &options = {});
/// The model in `bytes`, called `name` in messages. `folder`: of side files; empty: there are none.
llvm::Expected<Imported> importBytes(llvm::StringRef bytes, llvm::StringRef name, llvm::StringRef folder,
                                     const ImportOptions &options = {});

/// What a file declares, without importing anything.
struct Declared {
  struct Input { // a graph input that is not an initializer
    std::string name;
    std::optional<ir::DType> dtype; // absent where Fusor does not have it
  };
  std::vector<Input> inputs;
  std::vector<std::string> operators; // of the graph's nodes, in order
  int64_t opset = 0;                  // of ai.onnx
};
llvm::Expected<Declared> readDeclared(llvm::StringRef path);

} // namespace fusor::onnx
