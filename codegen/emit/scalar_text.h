// Scalar arithmetic of the IR as C: types, constants, and an op's formula applied to operands.
//
// Arithmetic on floats of at most 32 bits is done in float; on f64 and integers in double, as the reference does it.
// The result is then rounded to the result's dtype: every rounding of the IR is in the text, and no other.
#pragma once
#include "codegen/emit/code_writer.h"
#include "codegen/emit/names.h"
#include "ir/ops/op_def.h"

namespace fusor::codegen {

/// How elements of `type` lie in memory: "float", "bf16", "i1".
llvm::StringRef storageType(ir::DType type);
/// FP8 of codegen/device/fp8_unsaturated.cuh, of which f8e5m2's is also how an Inf is stored.
llvm::StringRef unsaturatedType(ir::DType type);
/// What load() gives for it, the type of variables: "float" for bf16, "bool" for i1.
llvm::StringRef variableType(ir::DType type);
/// What sums and extremes of it are accumulated in: "double" for f64 and integers, else "float".
llvm::StringRef accumulatorType(ir::DType type);
/// Elements of how many bytes an accumulator of `type` has.
unsigned accumulatorBytes(ir::DType type);
/// "Sum", "Max" or "Min" of codegen/device/reduce.cuh for sum, reduce_max and reduce_min.
llvm::StringRef reducer(const ir::Op &op);

struct ScalarOperand {
  std::string text; // an identifier, an element, or a literal: never needs parentheses
  ir::DType dtype;
};

/// A number of `type` as a literal.
std::string constantText(double value, ir::DType type);
/// `text`, of variable type of `from` (or float/double where `from` is), rounded to `to`: of variable type of `to`.
std::string castText(llvm::StringRef text, ir::DType from, ir::DType to);
/// An accumulator's value as a variable of `type`.
std::string fromAccumulator(llvm::StringRef text, ir::DType type);

/// An elementwise op. Subexpressions that are used twice become lines of `w` before.
std::string formulaText(const ir::Op &op, llvm::ArrayRef<ScalarOperand> operands, CodeWriter &w, NamePool &names);

} // namespace fusor::codegen
