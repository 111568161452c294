// How the operands of an op that is not elementwise relate: shapes, dtypes and data. cases.cpp turns a recipe into
// cases.
#pragma once
#include "ir/graph/graph.h"
#include "ir/ops/op_def.h"

namespace fusor::tests {

struct Operand {
  enum class Fill : uint8_t { samples, integers, booleans, constant, result } fill = Fill::samples;
  ir::Shape shape;
  std::optional<ir::DType> dtype = {}; // absent: the case's dtype
  double low = 0, high = 0;            // samples: 0, 0 means the entry's range. integers: inclusive. constant: low
  /// result: result `index` of `op` over these operands of the recipe, so that saved values fit.
  const char *op = "";
  llvm::SmallVector<unsigned, 4> of = {};
  unsigned index = 0;
  bool absent = false;
  ir::Granularity granularity = ir::Granularity::none;
  bool accumulates = false; // of what the case's dtype is computed in: f32, or f64
};

struct Recipe {
  std::vector<Operand> operands;
  ir::Attrs attrs = {};
  llvm::SmallVector<unsigned, 2> differentiable = {0};
  bool isRagged = false; // too large for finite differences
};

/// Recipes of `op`; empty for elementwise ops and for ops that have none.
std::vector<Recipe> recipesOf(llvm::StringRef op);

} // namespace fusor::tests
