// A small tensor whose elements are known at import: numbers, or sizes that inputs fix (B, T-1). Shape arithmetic of a
// graph (Shape, Gather, Concat, Mul, ... into Reshape) is done on these, and none of it is left in the module.
#pragma once
#include "frontend/onnx/tensor.h"
#include <optional>

namespace fusor::onnx {

struct Known {
  ir::DType dtype = ir::DType::i64; // an integer type or i1
  llvm::SmallVector<int64_t, 4> shape;
  std::vector<ir::Dim> elements;

  /// Whether all elements are numbers.
  bool isConstant() const;
};

/// The elements of a constant, where it is a small tensor of integers or booleans.
std::optional<Known> knownOf(const Data &data);
/// The constant; all elements must be numbers.
Data dataOf(const Known &known);

/// Element arithmetic of a graph on sizes. Absent where the result is no polynomial, or too large to be trusted.
using Fold = std::optional<ir::Dim> (*)(llvm::ArrayRef<ir::Dim> arguments);
std::optional<ir::Dim> foldAdd(llvm::ArrayRef<ir::Dim> a);
std::optional<ir::Dim> foldSub(llvm::ArrayRef<ir::Dim> a);
std::optional<ir::Dim> foldMul(llvm::ArrayRef<ir::Dim> a);
std::optional<ir::Dim> foldDiv(llvm::ArrayRef<ir::Dim> a);
std::optional<ir::Dim> foldMod(llvm::ArrayRef<ir::Dim> a);
std::optional<ir::Dim> foldNeg(llvm::ArrayRef<ir::Dim> a);
std::optional<ir::Dim> foldMin(llvm::ArrayRef<ir::Dim> a);
std::optional<ir::Dim> foldMax(llvm::ArrayRef<ir::Dim> a);
std::optional<ir::Dim> foldEqual(llvm::ArrayRef<ir::Dim> a);
std::optional<ir::Dim> foldLess(llvm::ArrayRef<ir::Dim> a);
std::optional<ir::Dim> foldGreater(llvm::ArrayRef<ir::Dim> a);
std::optional<ir::Dim> foldWhere(llvm::ArrayRef<ir::Dim> a);

/// `fold` over broadcast arguments; absent where it is for one element, or shapes do not broadcast.
std::optional<Known> foldElements(Fold fold, llvm::ArrayRef<const Known *> arguments, ir::DType result);

/// How many products a dim adds up, 3 for B*T+S+1, and the smallest and the largest of 0 and their coefficients.
struct DimTerms {
  unsigned count = 0;
  int64_t low = 0, high = 0;
};
DimTerms termsOf(const ir::Dim &dim);
/// Whether the dim cannot be negative: no negative coefficient, as symbols are not negative.
bool isNeverNegative(const ir::Dim &dim);
/// Whether `dim` is small enough to be computed with: its coefficients, and how many terms it has.
bool isModest(const ir::Dim &dim);

} // namespace fusor::onnx
