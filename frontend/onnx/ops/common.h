// What several families of expansions need.
#pragma once
#include "frontend/onnx/ops/table.h"

namespace fusor::onnx {

/// An i64 as `to`'s two's complement wraps it; `to` has at most 32 bits.
Term wrapped(Term x, ir::DType to);
/// The value in another dtype as ONNX's Cast has it: integers wrap, any number but 0 is true. `saturate` is for FP8.
Term castTo(Term x, ir::DType to, bool saturate = true);
/// The type sums are made in: f32, f64 for f64.
ir::DType wide(ir::DType dtype);
/// One op of the op table, on the first input.
void direct(NodeSite &s, llvm::StringRef op, ir::Attrs attrs = {});
/// The product of dims [first, last).
ir::Dim product(const ir::Shape &shape, unsigned first, unsigned last);
/// Axes from attribute or input `axes`, counted from the front; `otherwise` where there are none. Empty after a
/// failure.
std::optional<std::vector<int64_t>> axesOf(NodeSite &s, unsigned rank, bool asInput);
/// 0..rank-1
std::vector<int64_t> allDims(unsigned rank);
/// Indices below 0 counted from the end of a dim of `size`.
Term fromFront(Term indices, const ir::Dim &size);
/// x * sigmoid(x * slope)
Term swish(Term x, double slope);

} // namespace fusor::onnx
