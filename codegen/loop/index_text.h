// Where an element lies, as a C expression: offset + sum(strides[i] * d_i) of a linear index that runs over several
// dims.
//
//   extents [B, 256, 768], strides [256*768, 768, 1], index i    ->   i
//   extents [B, 256], strides [0, 1], index row                  ->   row % 256
#pragma once
#include "codegen/emit/kernel_builder.h"

namespace fusor::codegen {

/// Neighbouring dims that are walked through with one stride.
struct StrideGroup {
  ir::Dim extent, inner, stride; // index / inner % extent * stride
  bool outermost = false;
};
/// Groups with a stride, innermost first. Dims of size 1 have none.
llvm::SmallVector<StrideGroup, 4> strideGroups(llvm::ArrayRef<ir::Dim> extents, llvm::ArrayRef<ir::Dim> strides);

/// The terms of `index`, an identifier or an expression in parentheses; nothing where all strides are 0.
void appendTerms(llvm::SmallVectorImpl<std::string> &terms, llvm::ArrayRef<ir::Dim> extents,
                 llvm::ArrayRef<ir::Dim> strides, llvm::StringRef index, KernelBuilder &k);
/// "a + b + c"; "0" for none.
std::string sumOf(llvm::ArrayRef<std::string> terms);

} // namespace fusor::codegen
