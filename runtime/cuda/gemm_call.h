// A contraction as a library call: D[m, n] = A[m, k] * B[k, n], `batch` times, row-major, accumulated in f32, perhaps
// with a bias added before it is rounded.
//
//   %y = linear %x, @w, bias = @b               the whole fusion is one call: D is the result
//   %y = gelu(linear %x, @w, bias = @b)         D is the product, with its bias and rounded, in a workspace, and a
//                                               generated loop reads it from there
//   %h = linear %x, @w, bias = @b               D is %h, which is a result itself; the loop reads that
//   %y = gelu %h
//
// With FP8 operands the call takes 1 / scale of each, where the product is multiplied by it next, and both lie along
// the sum ("TN", see passes/fp8/tn.h):
//
//   %p = linear %q, @w.fp8 {out = f32}          A = %q, B = @w.fp8, both E4M3, or one of them E5M2
//   %s = mul %p, @x.scale_inv
//   %t = mul %s, @w.scale_inv                   D is %t + %b in bf16, or %t in f32
//   %y = cast (add %t, %b) {to = bf16}
#pragma once
#include "codegen/plan/anchors.h"
#include "ir/types/target.h"

namespace fusor::runtime {

struct GemmCall {
  codegen::ContractionPlan::Operand a, b;
  ir::Dim m, n, k, batch = 1;
  ir::DType outputType = ir::DType::f32;
  std::optional<unsigned> bias;      // an input: [n] elements of outputType
  std::optional<unsigned> scales[2]; // inputs: f32[], what an FP8 product is multiplied by
  bool fastAccumulation = false;     // of FP8 operands
  std::optional<unsigned> output;    // result number; else
  std::optional<unsigned> workspace; // workspace number
};

/// Why `target`'s cuBLASLt has no product of these operands, empty where it has: f32, bf16 or f16, both the same; or
/// FP8 where the device multiplies it.
std::string whyNoLibraryGemm(const codegen::ContractionPlan &plan, const ir::Target &target);

/// FP8 rows are read 16 bytes at a time: why these sizes have no product, empty where they have one.
std::string whySizesDoNotFit(const GemmCall &call, const ir::SymbolValues &symbols);
/// Whether that is empty for all symbol values.
bool fitsAllSizes(const GemmCall &call);

/// The largest part of a cluster that is one call: the product, perhaps scaled, perhaps with a bias, perhaps rounded to
/// the operands' type (of FP8, to bf16), up to the first value that something else uses too.
struct GemmPart {
  ir::Value value; // what D is
  GemmCall call;   // goes to a workspace or an output: whoever asks decides
};
GemmPart gemmPart(const codegen::ContractionPlan &plan, ir::Value product);

/// The call, where it is the whole cluster.
std::optional<GemmCall> wholeCall(const codegen::ContractionPlan &plan, const GemmPart &part);

} // namespace fusor::runtime
