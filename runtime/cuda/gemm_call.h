// A contraction as a library call: D[m, n] = A[m, k] * B[k, n], `batch` times, row-major, accumulated in f32, perhaps
// with a bias added before it is rounded.
//
//   %y = linear %x, @w, bias = @b               the whole fusion is one call: D is the result
//   %y = gelu(linear %x, @w, bias = @b)         D is the product, with its bias and rounded, in a workspace, and a
//                                               generated loop reads it from there
//   %h = linear %x, @w, bias = @b               D is %h, which is a result itself; the loop reads that
//   %y = gelu %h
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

/// The largest part of a cluster that is one call: the product, perhaps with a bias, perhaps rounded to the operands'
/// type, up to the first value that something else uses too.
struct GemmPart {
  ir::Value value; // what D is
  GemmCall call;   // goes to a workspace or an output: whoever asks decides
};
GemmPart gemmPart(const codegen::ContractionPlan &plan, ir::Value product);

/// The call, where it is the whole cluster.
std::optional<GemmCall> wholeCall(const codegen::ContractionPlan &plan, const GemmPart &part);

} // namespace fusor::runtime
