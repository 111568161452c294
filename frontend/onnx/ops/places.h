// Where indices point: places in a tensor that is taken as one row. What gathers and what scatters share.
#pragma once
#include "frontend/onnx/ops/common.h"

namespace fusor::onnx {

/// Elements of a comparison of every one with every other, at most.
inline constexpr int64_t kMaxDense = int64_t(1) << 24;

/// The place of each element of `indices` in x as one row: its own place in all dims but `axis`.
Term placesOf(NodeSite &s, Term x, Term indices, unsigned axis);

/// Places of rows of x that the last dim of `indices` (input 1) names, below `batch` common leading dims; and how many
/// dims it names.
struct Rows {
  Term places; // [batch..., more...]
  unsigned named = 0;
};
std::optional<Rows> rowsOf(NodeSite &s, const ir::Shape &x, Term indices, unsigned batch);

} // namespace fusor::onnx
