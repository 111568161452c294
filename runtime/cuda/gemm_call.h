// A contraction as a library call: D[m, n] = A[m, k] * B[k, n], `batch` times, row-major, accumulated in f32, perhaps
// with a bias added before it is rounded.
//
//   %y = linear %x, @w, bias = @b               the whole fusion is one call: D is the result
//   %y = gelu(linear %x, @w, bias = @b)         D is the f32 product in a workspace, a generated loop reads it from
//   there
#pragma once
#include "codegen/plan/anchors.h"

namespace fusor::runtime {

struct GemmCall {
  codegen::ContractionPlan::Operand a, b;
  ir::Dim m, n, k, batch = 1;
  ir::DType outputType = ir::DType::f32;
  std::optional<unsigned> bias;      // an input: [n] elements of outputType
  std::optional<unsigned> output;    // result number; else
  std::optional<unsigned> workspace; // workspace number
};

/// Whether cuBLASLt has these operands: f32, bf16 or f16, both the same.
bool isLibraryGemm(const codegen::ContractionPlan &plan);

/// The call, where the epilogue of `plan` is a rounding and at most a bias.
std::optional<GemmCall> wholeCall(const codegen::ContractionPlan &plan);

/// The call that leaves the f32 product in workspace number `workspace`.
GemmCall productCall(const codegen::ContractionPlan &plan, unsigned workspace);

} // namespace fusor::runtime
