// Inputs of a model that are indices: whether they lie in their dim is known when a run has them.
#pragma once
#include "ir/graph/graph.h"
#include "llvm/Support/Error.h"

namespace fusor::onnx {

/// Elements `first`, `first + every`, ... of a graph input are indices into a dim of `size`, -size to size - 1.
struct IndexBound {
  unsigned input = 0; // number of the argument
  ir::Dim size;
  unsigned first = 0, every = 1;
  std::string node = {}; // that reads them, for messages
};

/// The argument whose elements `value` has, perhaps as other integers, in another shape with the same order; absent
/// where they are computed.
std::optional<unsigned> argumentBehind(ir::Value value);

/// The elements of an input, where the caller has them.
struct IndexElements {
  ir::DType dtype = ir::DType::i64;
  llvm::ArrayRef<char> bytes;
};
/// Holds `inputs`, one an argument, against `bounds`. The error names the node, the input, the index and the dim. Where
/// `symbols` do not fix the dim nothing is checked.
llvm::Error checkIndexBounds(llvm::ArrayRef<IndexBound> bounds, const ir::Function &function,
                             llvm::ArrayRef<IndexElements> inputs, const ir::SymbolValues &symbols);

} // namespace fusor::onnx
