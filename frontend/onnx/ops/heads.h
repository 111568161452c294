// Attention's parts, which the operators of several families are put together from.
#pragma once
#include "frontend/onnx/ops/common.h"
#include <limits>

namespace fusor::onnx {

inline constexpr double kInf = std::numeric_limits<double>::infinity();

/// [B, T, N*d] -> [B, N, T, d]
Term headsFirst(NodeSite &s, Term x, int64_t heads);
/// [B, N, T, d] -> [B, T, N*d]
Term headsLast(Term x);
/// Each of the heads of x for `group` heads of queries, which are neighbours.
Term repeated(Term x, const ir::Dim &group);
/// 0 where allowed, else -inf.
Term zeroOrInf(Term allowed, ir::DType dtype);
/// Rotary embedding of [..., d]: pairs (i, i + r/2) of the first r, or (2i, 2i + 1), turned by the angles of cos and
/// sin, which broadcast with [..., r/2].
Term turned(Term x, Term cos, Term sin, const ir::Dim &r, bool interleaved);

} // namespace fusor::onnx
