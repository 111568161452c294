// Slices whose bounds are sizes that inputs fix: whether they lie in their dim is known when a run's sizes are.
#pragma once
#include "ir/graph/graph.h"
#include "llvm/Support/Error.h"

namespace fusor::runtime {

struct SliceBound {
  std::string function;
  ir::Dim first, last, dim; // what is read of the dim, both ends included
  ir::Dim size;             // nothing is read where it is 0
  std::string type;         // of the operand
};

/// Those of all functions that numbers alone do not settle.
std::vector<SliceBound> sliceBounds(const ir::Module &module);
/// An error names the first one that reads outside of its dim.
llvm::Error checkSliceBounds(llvm::ArrayRef<SliceBound> bounds, llvm::StringRef function,
                             const ir::SymbolValues &symbols);

} // namespace fusor::runtime
