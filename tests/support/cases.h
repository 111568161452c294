// Cases of every op of the table: operands, attributes and data. Property tests, the CPU backend's tests and kernel
// tests loop over them, so an op is tested on every back end the day it is added.
//
//   elementwise   made from the entry: every shape of kShapes, broadcast pairs, dtypes of its type class
//   the rest      one recipe or more an op in recipes.cpp; `casesOf` of an op without one is empty, and a test says so
#pragma once
#include "ir/graph/graph.h"
#include "ir/ops/op_def.h"

namespace fusor::tests {

/// An op applied to concrete operands.
struct OpCase {
  const ir::OpDef *def;
  llvm::SmallVector<std::optional<ir::TensorType>, 6> types; // one per operand slot; absent optional operands
  std::vector<ir::RefTensor> inputs;                         // one per present operand, in order; rounded to its dtype
  ir::Attrs attrs;
  /// Results that a loss may depend on: statistics and saved values are not among them.
  llvm::SmallVector<unsigned, 2> differentiable = {0};

  /// A module with one function @case that takes the operands %a0, %a1, ... and returns every result of the op.
  std::unique_ptr<ir::Module> module() const;
  /// That module's text: what a failing test prints.
  std::string text() const;
};

enum class Sizes : uint8_t {
  small,  // at most about 100 elements an operand: finite differences
  ragged, // 1, 31, 4097, 0, broadcast
};

/// Every case of `def` with `dtype` for its operands of free dtype. Empty where the op takes no such dtype. `seed`
/// draws the data.
std::vector<OpCase> casesOf(const ir::OpDef &def, ir::DType dtype, Sizes sizes, uint64_t seed = 1);

/// Ops that are not evaluated by themselves: return, yield, fusion.
bool isStructural(const ir::OpDef &def);

/// The dtypes cases are made for: f32, bf16, f16, f64 and, where the op takes integers or booleans, i32 and i1.
llvm::ArrayRef<ir::DType> caseDTypes();

} // namespace fusor::tests
