// Computes, at import, what the importer must know: the content of a value that a shape, an axis or a count depends on.
// It goes back from the value through the ops that were made for it, and evaluates those on the float64 reference.
#pragma once
#include "frontend/onnx/tensor.h"
#include "ir/reference/reference.h"
#include "llvm/ADT/DenseMap.h"
#include <functional>

namespace fusor::onnx {

/// The content of graph input `index`, where the caller gives it.
using InputContent = std::function<std::optional<Data>(unsigned index)>;

class Folder {
public:
  Folder(const ir::Module &module, InputContent inputs, int64_t budget)
      : module_(module), inputs_(std::move(inputs)), budget_(budget) {}

  /// The content; the error says what it depends on.
  llvm::Expected<const ir::RefTensor *> evaluate(ir::Value value);
  /// Graph inputs whose content decided something.
  llvm::ArrayRef<unsigned> fixedInputs() const { return fixed_; }

private:
  llvm::Error evaluateOne(ir::Value value);
  llvm::Expected<ir::RefTensor> leaf(ir::Value value);
  llvm::Error spend(const ir::TensorType &type);
  const ir::Module &module_;
  InputContent inputs_;
  int64_t budget_; // doubles left
  llvm::DenseMap<const ir::ValueDef *, ir::RefTensor> known_;
  llvm::SmallVector<unsigned, 2> fixed_;
};

} // namespace fusor::onnx
