// A cluster's body through the float64 reference: for ops that no kernel class takes, and to check those that one does.
#pragma once
#include "ir/graph/graph.h"
#include "ir/reference/reference.h"
#include "runtime/cpu/step.h"

namespace fusor::runtime {

/// A copy of one op (or of a fusion's body) as a function: arguments are the op's distinct operands, in order.
class ReferenceBody {
public:
  explicit ReferenceBody(const ir::Op &op);

  /// The operands of a bare op without absent and repeated ones; all operands of a fusion.
  static llvm::SmallVector<ir::Value, 8> inputsOf(const ir::Op &op);

  /// Tensors in memory (a quantised one has its scale behind its elements) to doubles.
  std::vector<ir::RefTensor> read(llvm::ArrayRef<const char *> inputs, const ir::SymbolValues &symbols) const;
  llvm::Expected<std::vector<ir::RefTensor>> evaluate(llvm::ArrayRef<ir::RefTensor> inputs,
                                                      const ir::SymbolValues &symbols) const;
  const ir::Function &function() const { return *function_; }
  /// A module of it as text, whose symbols have these values alone.
  std::string asModule(const ir::SymbolValues &symbols);

private:
  ir::Module module_{"reference"};
  ir::Function *function_;
};

ir::RefTensor readTensor(const ir::TensorType &type, const char *data, const ir::SymbolValues &symbols);
void writeTensor(const ir::TensorType &type, const ir::RefTensor &tensor, char *data);

class ReferenceStep : public Step {
public:
  ReferenceStep(std::shared_ptr<const ReferenceBody> body, ir::SymbolValues symbols)
      : body_(std::move(body)), symbols_(std::move(symbols)) {}
  void run(const StepMemory &memory, Workers &workers) const override;

private:
  std::shared_ptr<const ReferenceBody> body_;
  ir::SymbolValues symbols_;
};

} // namespace fusor::runtime
